// Measures the cost of a digest in every round (sync.digest_every = 1), relative to the training step of the
// same model, interleaved in one process. A round takes longer than its step, so this ratio is an upper limit
// of the digest's share.
//   build/release/bench_digest_cost [REPETITIONS]
#include <cstdlib>
#include <functional>
#include <vector>

#include "bench/measure.h"
#include "core/check.h"
#include "core/clock.h"
#include "core/rng.h"
#include "devices/device.h"
#include "devices/trainer.h"
#include "runtime/node/catalog.h"
#include "runtime/node/node.h"
#include "runtime/state/agreed_state.h"
#include "tests/support/sgd.h"

using namespace rivulet;
using rivulet::bench::percentile;

namespace {

struct Sample {
  double digest_us;
  double step_us;
};

double microseconds(const RealClock& clock, const std::function<bool()>& work) {
  const auto began = clock.now();
  RIVULET_CHECK(work(), "a step of the benchmark failed");
  return to_seconds(clock.now() - began) * 1e6;
}

std::vector<Sample> measure(const std::string& name, const RowShape& shape, std::size_t rows,
                            int repetitions) {
  const auto catalog = runtime::builtin_catalog();
  const auto device = devices::make_host_device();
  runtime::Config config;
  config.model.name = name;
  auto trainer = runtime::build_trainer(config, catalog, shape, *device).value();
  runtime::AgreedState state{devices::ModelState::create(trainer->layout(), *device).value(), 0, 0, {}};
  RIVULET_CHECK(trainer->initialize(state.model, 1), "the model was not initialized");
  std::vector<float> features(rows * shape.columns());
  std::vector<float> targets(rows);
  Rng rng = Rng::derive(1, "bench");
  for (auto& f : features) f = static_cast<float>(rng.uniform());
  for (auto& t : targets) t = static_cast<float>(rng.below(10));
  const std::size_t count = trainer->layout().contribution();
  std::vector<float> gradient(count);
  const BatchView batch{features, targets, rows, {}};
  const GradientView out{reinterpret_cast<std::byte*>(gradient.data()), count};
  const RealClock clock;
  std::vector<Sample> samples;
  for (int i = 0; i < repetitions; ++i) {
    const double digest = microseconds(clock, [&] { return bool(runtime::digest_of(state, *device)); });
    const double step = microseconds(clock, [&] {
      const bool computed = bool(trainer->compute_gradients(state.model, batch, out));
      devices::sgd_step(state.model, out);
      return computed;
    });
    if (i >= repetitions / 10) samples.push_back({digest, step});  // the first repetitions warm up
  }
  return samples;
}

void report(const char* name, std::size_t rows, const std::vector<Sample>& samples) {
  std::vector<double> digest;
  std::vector<double> step;
  std::vector<double> share;
  for (const auto& s : samples) {
    digest.push_back(s.digest_us);
    step.push_back(s.step_us);
    share.push_back(100 * s.digest_us / s.step_us);
  }
  fmt::print(
      "{:8} {:3} rows  digest {:7.1f} us  step {:9.1f} us  share {:.2f} % (p10 {:.2f}, p90 {:.2f})  n = {}\n",
      name, rows, percentile(digest, 0.5), percentile(step, 0.5), percentile(share, 0.5),
      percentile(share, 0.1), percentile(share, 0.9), samples.size());
}

}  // namespace

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 200;
  devices::prepare_process(1);
  for (const std::size_t rows : {10UL, 80UL})
    report("lenet5", rows, measure("lenet5", {{1, 28, 28}, 1}, rows, repetitions));
  for (const std::size_t rows : {10UL, 80UL})
    report("cnn", rows, measure("cnn", {{3, 32, 32}, 1}, rows, repetitions));
  return 0;
}
