// Compares the speed of a simulated group with that of a real one. The same scenario runs as four processes
// on shaped links, each with a fixed computing time, and in the simulation with the same times and the links'
// nominal rate. The figure is the ratio of rows/s. Needs root.
//   build/release/bench_virtual_clock [REPEATS] [NAME...]
#include <algorithm>
#include <cstdlib>

#include "bench/measure.h"
#include "tests/support/twin_runs.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

constexpr int devices_of_group = 4;

/// The payload is 204 KB to each of three peers: 2.4 s at 2 Mbit/s, 49 ms at 100 Mbit/s.
std::vector<TwinScenario> scenarios() {
  const std::vector<std::string> fixed{"batch.policy=fixed", "batch.rows=16"};
  const std::vector<std::string> sum{"batch.policy=fixed", "batch.rows=16", "sync.collective=sum"};
  const std::vector<std::string> ticks{"batch.policy=stream", "batch.tick=500ms", "batch.max_wait=1s"};
  // topk with a keep ratio of `share`, after `local_steps` local steps.
  const auto topk = [&fixed](const char* collective, const char* share, int local_steps) {
    auto settings = fixed;
    settings.insert(settings.end(), {std::string("sync.collective=") + collective, "compression.policy=fixed",
                                     "compression.compressor=topk", std::string("compression.keep=") + share,
                                     local_steps > 1 ? "sync.policy=periodic" : "sync.policy=every",
                                     "sync.local_steps=" + std::to_string(local_steps)});
    return settings;
  };
  const devices::DeviceProfile quick{20ms, 1600};
  const devices::DeviceProfile slow{100ms, 80};
  const std::vector<devices::DeviceProfile> mixed{{10ms, 2000}, {20ms, 500}, {40ms, 200}, {100ms, 100}};
  return {
      {"2 Mbit/s", 2e6, {quick}, {1000}, fixed, "rounds=10"},
      {"10 Mbit/s", 10e6, {quick}, {1000}, fixed, "rounds=30"},
      {"100 Mbit/s", 100e6, {quick}, {1000}, fixed, "rounds=150"},
      {"10 Mbit/s, sum", 10e6, {quick}, {1000}, sum, "rounds=30"},
      {"1 Mbit/s, topk, gather", 1e6, {quick}, {1000}, topk("gather", "0.01", 1), "rounds=100"},
      {"1 Mbit/s, topk, gather, local steps", 1e6, {quick}, {1000}, topk("gather", "0.05", 4), "rounds=40"},
      {"1 Mbit/s, topk, two_sided", 1e6, {quick}, {1000}, topk("two_sided", "0.02", 1), "rounds=100"},
      {"1 Mbit/s, topk, two_sided, local steps",
       1e6,
       {quick},
       {1000},
       topk("two_sided", "0.05", 4),
       "rounds=40"},
      {"slow devices", 100e6, {slow}, {1000}, fixed, "rounds=40"},
      {"mixed devices", 100e6, mixed, {1000}, fixed, "rounds=50"},
      {"uneven streams", 10e6, {quick}, {100, 50, 20, 5}, ticks, "seconds=20"}};
}

void measure(TwinRuns& runs, const TwinScenario& scenario, int repeats) {
  std::vector<double> ratio;
  std::vector<double> real_s;
  const auto simulated = runs.virtually(scenario);
  if (!simulated) return (void)fmt::print(stderr, "{}\n", simulated.error().message);
  for (int i = 0; i < repeats; ++i) {
    const auto real = runs.really(scenario);
    if (!real) return (void)fmt::print(stderr, "{}\n", real.error().message);
    ratio.push_back(simulated.value().rows_per_s() / real.value().rows_per_s());
    real_s.push_back(real.value().rows_per_s());
  }
  fmt::print("{:15} {:7.1f} rows/s, {:6.2f} rounds/s virtual; real {:7.1f} rows/s; virtual : real {}\n",
             scenario.name, simulated.value().rows_per_s(), simulated.value().rounds_per_s(),
             bench::percentile(real_s, 0.5), bench::spread(ratio, "x"));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 5;
  const std::vector<std::string> names(argv + std::min(argc, 2), argv + argc);
  auto runs = TwinRuns::create(devices_of_group);
  if (!runs) {
    fmt::print(stderr, "{}\n", runs.error().message);
    return 1;
  }
  for (const TwinScenario& scenario : scenarios())
    if (names.empty() || std::find(names.begin(), names.end(), scenario.name) != names.end())
      measure(*runs.value(), scenario, repeats);
  return 0;
}
