#include "runtime/cli/demo/demo_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "runtime/cli/checks/checks.h"
#include "runtime/cli/text.h"

namespace rivulet::runtime::cli {
namespace {

namespace fs = std::filesystem;

constexpr int elastic_seconds_least = 10;  ///< time to notice three changes

Error usage(std::string message) {
  return {ErrorCode::usage, std::move(message)};
}

Result<std::vector<double>> rates_of(const DemoOptions& options) {
  static const std::vector<double> usual = {800, 400, 200, 100};
  std::vector<double> rates = usual;
  if (!options.rates.empty()) {
    auto parsed = parse_rates("--rates", options.rates);
    if (!parsed) return parsed.error();
    rates = std::move(parsed).value();
  }
  constexpr double too_fast = 1e6;
  for (const double rate : rates)
    if (rate > too_fast)
      return usage(fmt::format("--rates: {} rows/s is too high; maximum {}", rate, too_fast));
  if (std::all_of(rates.begin(), rates.end(), [](double rate) { return rate <= 0; }))
    return usage("--rates: all rates are 0; at least one must be above 0");
  const bool own = !options.rates.empty() && rates.size() > 1;
  const auto devices = options.devices > 0 ? static_cast<std::size_t>(options.devices)
                                           : (options.rates.empty() ? usual.size() : rates.size());
  if (own && devices != rates.size()) {
    return usage(fmt::format("--devices is {}, but --rates has {} values", devices, rates.size()));
  }
  if (devices > 64) return usage(fmt::format("--devices {}: too many for one machine; maximum 64", devices));
  const auto given = rates;
  rates.clear();
  for (std::size_t i = 0; i < devices; ++i) rates.push_back(given[i % given.size()]);
  return rates;
}

Result<fs::path> make_directory(const std::string& keep) {
  std::error_code error;
  if (!keep.empty()) {
    const auto path = fs::absolute(keep);
    fs::create_directories(path, error);
    if (!error && fs::exists(path / "job.toml")) {
      return Error{
          ErrorCode::usage,
          fmt::format("--keep {}: the folder contains an earlier demo; choose a different folder", keep)};
    }
    if (!error) return path;
    return Error{ErrorCode::io, fmt::format("cannot create {}: {}", keep, error.message())};
  }
  auto name = (fs::temp_directory_path(error) / "rivulet-demo-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) return Error{ErrorCode::io, fmt::format("cannot create {}", name)};
  return fs::path(name);
}

bool holds_images(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "train-images-idx3-ubyte.gz", error) ||
         fs::exists(folder / "train-images-idx3-ubyte", error);
}

std::string list_of(const std::vector<double>& rates) {
  return fmt::format("{}", fmt::join(rates, ","));
}

}  // namespace

fs::path own_program() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

Result<std::string> find_demo_data(const std::string& given) {
  const char* variable = std::getenv("RIVULET_DATA");  // NOLINT(concurrency-mt-unsafe): no thread runs yet
  for (const std::string& named : {given, std::string(variable == nullptr ? "" : variable)}) {
    if (named.empty()) continue;
    if (holds_images(named)) return fs::absolute(named).string();
    return Error{
        ErrorCode::io,
        fmt::format("no MNIST images in {}: expected train-images-idx3-ubyte.gz and three more files",
                    named)};
  }
  auto folder = own_program().parent_path();
  for (; !folder.empty(); folder = folder.parent_path()) {
    for (const char* place : {"examples/mnist/data", "share/rivulet/examples/mnist/data"}) {
      if (holds_images(folder / place)) return (folder / place).string();
    }
    if (folder == folder.root_path()) break;
  }
  return Error{ErrorCode::io,
               "no MNIST files in examples/mnist/data near the binary; set their folder with --data DIR"};
}

std::vector<double> changed_rates(std::vector<double> rates) {
  if (!rates.empty()) *std::min_element(rates.begin(), rates.end()) *= 4;
  return rates;
}

Result<DemoPlan> plan_demo(const DemoOptions& options) {
  auto rates = rates_of(options);
  if (!rates) return rates.error();
  if (!(options.seconds >= 1 && options.seconds <= 86'400)) return usage("--seconds must be from 1 to 86400");
  const std::size_t devices = rates.value().size();
  if (options.elastic && devices < 3) return usage("--elastic requires at least 3 devices");
  if (options.elastic && options.seconds < elastic_seconds_least)
    return usage(fmt::format("--elastic requires --seconds of at least {}", elastic_seconds_least));
  auto data = find_demo_data(options.data);
  if (!data) return data.error();
  auto ports = free_ports(devices + (options.elastic ? 1 : 0));
  if (!ports) return ports.error();
  auto directory = make_directory(options.keep);
  if (!directory) return directory.error();
  DemoPlan plan;
  plan.directory = std::move(directory).value();
  plan.keep = !options.keep.empty();
  plan.data = std::move(data).value();
  plan.brokers = options.brokers;
  plan.embedded = options.brokers.empty();
  if (!plan.embedded) plan.job = plan.topic = fmt::format("rivulet-demo-{}", ::getpid());
  plan.rates = std::move(rates).value();
  plan.second_rates = changed_rates(plan.rates);
  plan.seconds = options.seconds;
  plan.change_at = options.seconds / 2;
  plan.model = options.model;
  plan.seed = options.seed;
  if (options.elastic) plan.elastic = plan_elastic(devices, options.seconds, options.seed);
  plan.http_ports = std::move(ports).value();
  return plan;
}

std::string device_name(std::size_t index) {
  return fmt::format("device-{}", index + 1);
}

fs::path device_directory(const DemoPlan& plan, std::size_t index) {
  return plan.directory / device_name(index);
}

fs::path job_file(const DemoPlan& plan) {
  return plan.directory / "job.toml";
}

/// With fewer devices than most of the usual number nothing could be committed.
std::string job_devices(const DemoPlan& plan) {
  const std::size_t usual = plan.devices();
  return plan.elastic ? fmt::format("{{ min = {}, wanted = {}, max = {} }}", usual / 2 + 1, usual, usual + 1)
                      : std::to_string(usual);
}

std::string job_file_text(const DemoPlan& plan) {
  return fmt::format(
      R"(# Written by rivulet demo: configuration shared by all devices of the job. Each device adds --id, --partitions,
# --data-dir and --http. All keys are explained by: rivulet config init
version = 1

[job]
name    = {}
devices = {}
seed    = {}

[source]
topics = [{}]

[source.kafka.properties]
bootstrap.servers = {}

[decode]
format = "raw"
raw    = {{ label = "u8", features = "u8", shape = [1, 28, 28], scale = 0.0127288, shift = -0.4242 }}

[model]
name    = {}
classes = 10

[train]
loss      = "cross_entropy"
optimizer = {{ name = "sgd", lr = 0.05, momentum = 0.9 }}

[checkpoint]
every = {{ rounds = 500, interval = "2s" }}  # short: the embedded broker retains records for seconds only; offsets are committed with checkpoints

[sync]
on_peer_loss = "reform"  # if a device is killed, the demo restarts it; its peers wait and resume

[log]
format = "logfmt"
)",
      toml_string(plan.job), job_devices(plan), plan.seed, toml_string(plan.topic), toml_string(plan.brokers),
      toml_string(plan.model));
}

std::vector<std::string> broker_arguments(const DemoPlan& plan) {
  return {"broker", "--job", plan.job, "--topic", fmt::format("{}:{}", plan.topic, plan.devices())};
}

std::vector<std::string> device_arguments(const DemoPlan& plan, std::size_t index, double seconds) {
  std::vector<std::string> arguments = {"run",
                                        "--config",
                                        job_file(plan).string(),
                                        "--id",
                                        device_name(index),
                                        "--partitions",
                                        std::to_string(plan.partition_of(index)),
                                        "--data-dir",
                                        device_directory(plan, index).string(),
                                        "--http",
                                        fmt::format("127.0.0.1:{}", plan.http_ports[index]),
                                        "--stop-after",
                                        fmt::format("seconds={}", seconds),
                                        "--json"};
  if (index == 0) {  // one is enough: parameters are identical on all devices
    arguments.insert(arguments.end(), {"--set", "evaluate.held_out.path=" + toml_string(plan.data),  //
                                       "--set", "evaluate.held_out.every=\"5s\""});
  }
  return arguments;
}

std::vector<std::string> feeder_arguments(const DemoPlan& plan) {
  std::vector<std::string> arguments = {"feed",           plan.data,
                                        "--brokers",      plan.brokers,
                                        "--topic",        plan.topic,
                                        "--rates",        list_of(plan.rates),
                                        "--second-rates", list_of(plan.second_rates),
                                        "--change-at",    fmt::format("{}s", plan.change_at),
                                        "--seed",         std::to_string(plan.seed),
                                        "--job",          plan.job,
                                        "--repeat",       "--json"};
  if (plan.embedded) arguments.emplace_back("--pace");
  return arguments;
}

Result<std::vector<int>> free_ports(std::size_t count) {
  constexpr std::size_t first = 12'000;
  constexpr std::size_t range = 8000;
  constexpr std::size_t apart = 61;  // offset between concurrent demos
  std::vector<int> ports;
  for (std::size_t tries = 0; tries < range && ports.size() < count; ++tries) {
    const std::size_t port = first + (static_cast<std::size_t>(::getpid()) * apart + tries) % range;
    if (port_check(fmt::format("127.0.0.1:{}", port)).level == CheckLevel::ok)
      ports.push_back(static_cast<int>(port));
  }
  if (ports.size() == count) return ports;
  return Error{ErrorCode::unavailable, "too few free ports on 127.0.0.1 between 12000 and 19999"};
}

}  // namespace rivulet::runtime::cli
