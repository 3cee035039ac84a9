// Measures the cost of a device relative to a training loop with LibTorch alone. The same LeNet-5, batch of
// 64, optimizer and one thread, in turns: the bare loop on tensors in memory, our Trainer on rows in memory,
// and a whole device (MNIST rows from memory, decoder, buffer, batch, rounds of a group of one, ledger,
// digests), by the CPU time of all its threads.
//   build/release/bench_training_loop [ROUNDS]
#include <atomic>
#include <cstdlib>
#include <memory>
#include <vector>

#include "bench/bare_loop.h"
#include "bench/measure.h"
#include "bench/model_step.h"
#include "bench/one_device.h"
#include "core/clock.h"
#include "runtime/node/node.h"

using namespace rivulet;
using namespace rivulet::bench;

namespace {

constexpr std::size_t batch = 64;
constexpr Duration length = std::chrono::seconds(1);  ///< of each loop per round

/// The worker, with a step counter for other threads.
class Counted final : public runtime::Agent {
 public:
  explicit Counted(runtime::Node& node) : node_(node) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "train"; }
  runtime::Turn step() override {
    const runtime::Turn turn = node_.worker().step();
    steps_ = node_.state().stamp.step;
    return turn;
  }
  [[nodiscard]] std::uint64_t steps() const { return steps_; }

 private:
  runtime::Node& node_;
  std::atomic<std::uint64_t> steps_{0};
};

/// Returns the CPU microseconds of the whole process per row, after ten steps.
double device_us_per_row() {
  OneDevice device({"model.name=lenet5", "batch.policy=fixed", "batch.rows=64",
                    "checkpoint.every.rounds=1000000", "checkpoint.every.interval=30s"});  // no checkpoint
  Counted train(device.node());
  TimePoint end = TimePoint::max();
  double began = 0;
  double used = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  device.run(train, [&] {
    if (end == TimePoint::max() && train.steps() >= 10) {
      end = device.clock().now() + length;
      first = train.steps();
      began = process_cpu_seconds();
    }
    if (device.clock().now() < end) return false;
    last = train.steps();
    used = process_cpu_seconds() - began;
    return true;
  });
  return used * 1e6 / static_cast<double>((last - first) * batch);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  devices::prepare_process(1);
  ModelStep trainer(batch);
  BareLoop bare(trainer.features(), trainer.targets(), batch);
  std::vector<double> bare_us;
  std::vector<double> trainer_us;
  std::vector<double> device_us;
  for (int i = 0; i <= rounds; ++i) {
    const double b = bare.us_per_row(length);
    const double t = trainer.us_per_row(length);
    const double d = device_us_per_row();
    if (i == 0) continue;  // warm-up
    bare_us.push_back(b);
    trainer_us.push_back(t);
    device_us.push_back(d);
  }
  fmt::print("bare LibTorch loop   {}\n", spread(bare_us, "us of CPU per row"));
  fmt::print("our Trainer          {}\n", spread(trainer_us, "us of CPU per row"));
  fmt::print("our device           {}\n", spread(device_us, "us of CPU per row"));
  fmt::print("Trainer vs. bare     {}\n", spread(ratios(trainer_us, bare_us), "x"));
  fmt::print("device vs. bare      {}\n", spread(ratios(device_us, bare_us), "x"));
  return 0;
}
