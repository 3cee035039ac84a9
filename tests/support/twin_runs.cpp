#include "tests/support/twin_runs.h"

#include <fmt/format.h>

#include "runtime/wiring/simulate.h"
#include "tests/support/places.h"
#include "tests/support/text.h"

namespace rivulet::testing {
namespace {

using namespace std::chrono_literals;

constexpr Duration run_longest = 180s;

/// `of` one per device; repeated if fewer.
template <class T>
const T& of_device(const std::vector<T>& all, int device) {
  return all[static_cast<std::size_t>(device) % all.size()];
}

/// Rows and time of a group are equal in all summaries of its devices.
TwinPace pace_of(const runtime::Summary& summary, std::uint64_t rows) {
  return {summary.rounds, rows, static_cast<double>(rows) / summary.rows_per_s};
}

}  // namespace

Result<std::unique_ptr<TwinRuns>> TwinRuns::create(int devices) {
  auto network = Network::create({.nodes = devices});
  if (!network) return network.error();
  auto kafka = KafkaServer::start({.host = network.value()->host_address()});
  if (!kafka) return kafka.error();
  return std::unique_ptr<TwinRuns>(
      new TwinRuns(devices, std::move(network).value(), std::move(kafka).value()));
}

Result<std::string> TwinRuns::write_config(const TwinScenario& scenario) {
  const std::string text = fmt::format(
      R"(version = 1
[job]
name = "twin-{}"
devices = {}
[source]
type = "synthetic"
topics = ["rows"]
[source.kafka.properties]
bootstrap.servers = "{}"
[decode]
format = "raw"
raw = {{ label = "f32", features = "f32", shape = [1, 28, 28], scale = 1.0, shift = 0.0 }}
[model]
name = "mlp"
classes = 10
mlp = {{ hidden = [64] }}
[sync]
policy = "every"
collective = "gather"
[compression]
policy = "none"
[checkpoint]
every = {{ rounds = 1000000, interval = "1h" }}
[log]
format = "logfmt"
)",
      ++runs_, devices_, kafka_->brokers());
  for (int node = 0; node < devices_; ++node)
    if (auto set = network_->set_rate(node, scenario.bits_per_second); !set) return set.error();
  return folder_.write(fmt::format("{}.toml", runs_), text).string();
}

Result<std::unique_ptr<Process>> TwinRuns::start(const TwinScenario& scenario, int device,
                                                 const std::string& config) {
  const devices::DeviceProfile& profile = of_device(scenario.profiles, device);
  ProcessOptions options;
  options.network_namespace = network_->namespace_of(device);
  options.command = {paced_device(), std::to_string(to_seconds(profile.fixed)),
                     std::to_string(profile.rows_per_second), scenario.stop_after, config};
  auto& words = options.command;
  words.insert(words.end(), scenario.settings.begin(), scenario.settings.end());
  words.insert(words.end(), {fmt::format("device.id=device-{:02}", device + 1),
                             fmt::format("device.data_dir={}/{}-{}", folder_.path().string(), runs_, device),
                             fmt::format("source.partitions=[{}]", device),
                             fmt::format("source.rate={}", of_device(scenario.rows_per_second, device)),
                             "sync.bind=" + network_->address_of(device)});
  return Process::start(options);
}

Result<TwinPace> TwinRuns::really(const TwinScenario& scenario) {
  const auto config = write_config(scenario);
  if (!config) return config.error();
  std::vector<std::unique_ptr<Process>> processes;
  for (int device = 0; device < devices_; ++device) {
    auto started = start(scenario, device, config.value());
    if (!started) return started.error();
    processes.push_back(std::move(started).value());
  }
  runtime::Summary first;
  std::uint64_t rows = 0;
  for (const auto& process : processes) {
    const auto status = process->wait(run_longest);
    const auto summary = runtime::summary_from_json(last_line(process->output()));
    if (!status || status->code != 0 || !summary)
      return Error{ErrorCode::unavailable, scenario.name + ": " + process->errors()};
    rows += summary->devices.front().rows_trained;
    if (process == processes.front()) first = *summary;
  }
  return pace_of(first, rows);
}

Result<TwinPace> TwinRuns::virtually(const TwinScenario& scenario) {
  const auto config = write_config(scenario);
  if (!config) return config.error();
  const auto loaded = runtime::load_config({.file = config.value(), .sets = scenario.settings});
  for (const auto& problem : loaded.problems)
    if (!loaded.usable()) return Error{ErrorCode::invalid_config, problem.text()};
  runtime::SimulateOptions options;
  options.profiles = scenario.profiles;
  for (const double rate : scenario.rows_per_second) options.rates.push_back({{0.0, rate}});
  options.own_links = {
      {Duration::zero(), scenario.bits_per_second / 8, Network::burst_of_link(scenario.bits_per_second)}};
  const auto stop_after = runtime::parse_stop_after(scenario.stop_after);
  if (!stop_after) return stop_after.error();
  options.stop_after = stop_after.value();
  runtime::StopRequest stop{0};
  const auto result = simulate(loaded, options, [](double, const runtime::Summary&) {}, stop);
  if (result.exit != runtime::ExitCode::ok) return Error{ErrorCode::unavailable, result.message};
  std::uint64_t rows = 0;
  for (const auto& device : result.summary.devices) rows += device.rows_trained;
  return pace_of(result.summary, rows);
}

}  // namespace rivulet::testing
