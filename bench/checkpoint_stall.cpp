// Measures how long a checkpoint stalls training. One device with a state of 10 MB (parameters and momentum
// in float32), with the real Worker and Checkpointer on their threads; the file is written and synced. Every
// tenth round takes a checkpoint. The stall is the extra time of this round and of the rounds during writing,
// compared with the undisturbed rounds. A group's round is longer, so the share there is smaller.
//   build/release/bench_checkpoint_stall [CHECKPOINTS]
#include <atomic>
#include <cstdlib>
#include <string>

#include "bench/measure.h"
#include "bench/one_device.h"

using namespace rivulet;
using namespace rivulet::bench;

namespace {

constexpr int rounds_per_checkpoint = 10;

struct Round {
  double wall_s = 0;  ///< since the end of the previous round
  double work_s = 0;  ///< wall time inside the worker's steps
  double cpu_s = 0;   ///< CPU time of the worker's steps
  double last_s = 0;  ///< CPU time of the last step: update, ledger, copy
  long switches = 0;  ///< preemptions during the steps
  bool copied = false;
  bool writing = false;  ///< the checkpoint thread was busy when the round began
};

/// The worker, with timing of every step.
class Watched final : public runtime::Agent {
 public:
  Watched(runtime::Node& node, const Clock& clock) : node_(node), clock_(clock) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "train"; }
  runtime::Turn step() override {
    const std::uint64_t step = node_.state().stamp.step;
    const bool busy = node_.checkpoints()->busy();
    if (fresh_) round_.writing = busy;
    fresh_ = false;
    const TimePoint began = clock_.now();
    const double cpu = thread_cpu_seconds();
    const long switches = involuntary_switches();
    const runtime::Turn turn = node_.worker().step();
    const TimePoint ended = clock_.now();
    round_.work_s += to_seconds(ended - began);
    round_.last_s = thread_cpu_seconds() - cpu;
    round_.cpu_s += round_.last_s;
    round_.switches += involuntary_switches() - switches;
    round_.copied = round_.copied || (!busy && node_.checkpoints()->busy());
    if (node_.state().stamp.step != step) finish_round(ended);
    return turn;
  }
  /// Call only after the thread has ended.
  [[nodiscard]] const std::vector<Round>& rounds() const { return rounds_; }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  void finish_round(TimePoint at) {
    round_.wall_s = to_seconds(at - ended_);
    ended_ = at;
    rounds_.push_back(round_);
    count_ = rounds_.size();
    round_ = {};
    fresh_ = true;
  }

  runtime::Node& node_;
  const Clock& clock_;
  std::vector<Round> rounds_;
  std::atomic<std::size_t> count_{0};
  Round round_;
  bool fresh_ = true;
  TimePoint ended_ = clock_.now();
};

/// One device for N checkpoints.
class Run {
 public:
  explicit Run(const std::vector<std::string>& settings) : device_(with_model(settings)) {}

  std::vector<Round> rounds(std::size_t checkpoints) {
    Watched watched(device_.node(), device_.clock());
    device_.run(watched, [&] { return watched.count() >= (checkpoints + 2) * rounds_per_checkpoint; });
    return watched.rounds();
  }
  [[nodiscard]] double state_bytes() {
    const auto& model = device_.node().state().model;
    return 2.0 * static_cast<double>(model.parameters().host_bytes().size());
  }

 private:
  static std::vector<std::string> with_model(std::vector<std::string> settings) {
    settings.insert(settings.end(), {"model.name=mlp",
                                     "model.mlp.hidden=[1570]",  // 1.25 million parameters
                                     "checkpoint.every.rounds=" + std::to_string(rounds_per_checkpoint),
                                     "checkpoint.every.interval=1h"});
    return settings;
  }
  OneDevice device_;
};

struct Stalls {
  std::vector<double> round_ms;  ///< undisturbed, one median per checkpoint
  std::vector<double> cpu_ms;    ///< CPU of the train thread in such a round
  std::vector<double> copying;   ///< % of a round: extra CPU of the round with the copy
  std::vector<double> writing;   ///< % of a round: total extra CPU of the rounds during writing
  std::vector<double> by_clock;  ///< % of a round: both in wall time, without preemptions
};

double median_of(const std::vector<Round>& rounds, double Round::* what) {
  std::vector<double> values;
  for (const Round& r : rounds) values.push_back(r.*what);
  return percentile(values, 0.5);
}

/// Compares a checkpoint with the undisturbed rounds between it and the next one.
void add_checkpoint(Stalls& stalls, const Round* first, const Round* end) {
  std::vector<Round> disturbed;
  std::vector<Round> usual;
  for (const Round* r = first; r != end; ++r) (r->copied || r->writing ? disturbed : usual).push_back(*r);
  if (usual.size() < 3) return;
  const double cpu = median_of(usual, &Round::cpu_s);
  const double last = median_of(usual, &Round::last_s);
  const double wall = median_of(usual, &Round::wall_s);
  double beside = 0;
  double by_clock = 0;
  long switches = 0;
  std::erase_if(usual, [](const Round& r) { return r.switches > 0; });
  for (const Round& r : disturbed) {
    beside += r.copied ? 0 : r.cpu_s - cpu;
    by_clock += r.work_s - median_of(usual, &Round::work_s);
    switches += r.switches;
  }
  stalls.round_ms.push_back(1e3 * wall);
  stalls.cpu_ms.push_back(1e3 * cpu);
  stalls.copying.push_back(100 * (first->last_s - last) / wall);
  stalls.writing.push_back(100 * beside / wall);
  if (switches == 0 && usual.size() >= 3) stalls.by_clock.push_back(100 * by_clock / wall);
}

Stalls stalls_in(const std::vector<Round>& rounds) {
  Stalls stalls;
  const auto next_copy = [&](std::size_t from) {
    while (from < rounds.size() && !rounds[from].copied) ++from;
    return from;
  };
  for (std::size_t at = next_copy(rounds_per_checkpoint + 1); at < rounds.size();) {
    const std::size_t next = next_copy(at + 1);
    add_checkpoint(stalls, &rounds[at], rounds.data() + next);
    at = next;
  }
  return stalls;
}

void measure(const char* name, const std::vector<std::string>& settings, std::size_t checkpoints) {
  Run run(settings);
  const Stalls stalls = stalls_in(run.rounds(checkpoints));
  fmt::print("{}, state {:.1f} MB\n  round                         {}\n", name, run.state_bytes() / 1e6,
             spread(stalls.round_ms, "ms"));
  fmt::print("  of it, CPU                    {}\n", spread(stalls.cpu_ms, "ms"));
  fmt::print("  stall, CPU: the copy          {}\n", spread(stalls.copying, "% of a round"));
  fmt::print("  stall, CPU: while it writes   {}\n", spread(stalls.writing, "% of a round"));
  fmt::print("  stall, clock: both            {}\n", spread(stalls.by_clock, "% of a round"));
}

}  // namespace

int main(int argc, char** argv) {
  const auto checkpoints = static_cast<std::size_t>(argc > 1 ? std::atoi(argv[1]) : 40);
  devices::prepare_process(1);
  measure("default rounds (a tick of 100 ms), 200 rows/s", {"source.rate=200"}, checkpoints);
  measure("rounds back to back, 64 rows each", {"batch.policy=fixed"}, checkpoints);
  return 0;
}
