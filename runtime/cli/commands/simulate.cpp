#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <ostream>

#include "devices/trainer.h"
#include "runtime/cli/config_flags.h"
#include "runtime/cli/progress_line.h"
#include "runtime/cli/report.h"
#include "runtime/cli/text.h"
#include "runtime/process/signals.h"
#include "runtime/wiring/simulate.h"
#include "runtime/wiring/simulation_faults.h"
#include "runtime/wiring/simulation_traces.h"

namespace rivulet::runtime::cli {
namespace {

constexpr const char* simulate_footer = R"(Examples:
  rivulet simulate --data examples/mnist/data --rates 800,400,200,100 --stop-after seconds=35
  rivulet simulate --config device.toml --devices 64 --rates 50 --stop-after rounds=200
  rivulet simulate --devices 2 --rates "0:800,15:200 0:100"                one trace per device, separated by a space
  rivulet simulate --devices 8 --latency 20ms --bandwidth 5 --profile-rate 500 --stop-after seconds=60 --json
  rivulet simulate --devices 16 --trace "S1'" --data examples/mnist/data --csv out --stop-after seconds=120
  rivulet simulate --devices 3 --profile 1ms+8000,10ms+500 --own-link 10mbit/5ms --faults day.txt
  rivulet simulate --devices 1000 --trace diurnal:20 --timing-only --stop-after rounds=20

Runs the same job with all devices in one process under a virtual clock. The same seed gives the same
output, byte for byte. A device takes FIXED + rows / RATE per batch, as set by --profile FIXED+RATE (one per
device, repeated).

Traces, in rows/s:
  constant:RATE               same for every device
  S1  S2  S1'  S2'            drawn once per device, as in ScaDLES: uniform with mean 38 or 300, normal with
                              mean 64 or 256
  diurnal:MEAN[,SECONDS]      periodic over a day of SECONDS, each device in its own time zone
  bursty:MEAN[,SECONDS]       20 % of the time at five times the mean, otherwise silent
  recorded:FILE[,FILE...]     lines SECOND,RATE

Faults, one per line; a device is given by number, letter or id:
  at 120 kill b               as by kill -9; the others wait until it is restarted
  at 130 start b              restart with an empty disk
  at 150 stop c               as by SIGTERM; it does not return, so training ends here
  at 200 link a 1mbit 20ms    its traffic shares this link from now on; `free` = unlimited)";

struct SimulateFlags {
  std::string rates = "100";
  std::string trace;
  std::string profile;
  std::string own_link;
  std::string faults;
  std::string csv;
  bool timing_only = false;
  std::string stop_after = "seconds=30";
  std::string profile_fixed = "1ms";
  double profile_rate = 8000;
  std::string latency = "0ms";
  double bandwidth = 0;
  int labels_per_device = 0;
  bool in_order = false;
  std::string data;
  std::string held_out;
  std::string seed;
  std::string model;
  bool json = false;
};

/// "800,400" gives a constant per device; with a colon each space-separated item is one device's trace.
Result<std::vector<RateTrace>> traces_of(const std::string& text) {
  std::vector<RateTrace> traces;
  const bool with_times = text.find(':') != std::string::npos;
  for (const auto& item : split(text, with_times ? ' ' : ',')) {
    if (item.empty()) continue;
    auto trace = parse_trace(item);
    if (!trace) return trace.error();
    traces.push_back(std::move(trace).value());
  }
  return traces;
}

/// Accepts seeds that fit TOML's signed 64-bit integers.
bool parse_seed(const std::string& text) {
  std::int64_t seed = -1;
  const char* end = text.data() + text.size();
  return std::from_chars(text.data(), end, seed).ptr == end && seed >= 0;
}

Status set_duration(const std::string& flag, const std::string& text, Duration& into) {
  const auto duration = parse_duration(text);
  if (!duration) return Error{ErrorCode::usage, fmt::format("{}: {}", flag, duration.error().message)};
  into = duration.value();
  return ok();
}

/// Parses "1ms+8000": fixed time per batch, and rows per second.
Result<devices::DeviceProfile> parse_profile(const std::string& text) {
  const auto plus = text.find('+');
  const Error wrong{ErrorCode::usage, fmt::format("--profile: '{}' is not FIXED+RATE, such as 1ms+8000 "
                                                  "(fixed time per batch, rows computed per second)",
                                                  text)};
  const auto fixed = parse_duration(text.substr(0, plus));
  const auto rate = plus == std::string::npos ? Result<std::vector<double>>(wrong)
                                              : parse_rates("--profile", text.substr(plus + 1));
  if (!fixed || !rate || rate.value().size() != 1 || !(rate.value().front() > 0)) return wrong;
  return devices::DeviceProfile{fixed.value(), rate.value().front()};
}

/// Parses "10mbit", "10mbit/5ms" or "10mbit/5ms/16kB".
Result<sync::MemoryNetwork::Link> parse_link(const std::string& text) {
  const auto parts = split(text, '/');
  const auto wrong = [](const std::string& what) { return Error{ErrorCode::usage, "--own-link: " + what}; };
  if (parts.size() > 3)
    return wrong(fmt::format("'{}' has more than three parts; expected BANDWIDTH[/LATENCY[/BURST]]", text));
  const auto bandwidth = parse_bandwidth(parts.empty() ? text : parts[0]);
  if (!bandwidth) return wrong(bandwidth.error().message);
  sync::MemoryNetwork::Link link{.bytes_per_second = bandwidth.value()};
  if (parts.size() > 1)
    if (auto set = set_duration("--own-link", parts[1], link.latency); !set) return set.error();
  if (parts.size() > 2) {
    const auto burst = parse_bytes(parts[2]);
    if (!burst) return wrong(burst.error().message);
    link.burst_bytes = burst.value();
  }
  return link;
}

/// Parses each comma-separated item.
template <class T>
Status parse_each(const std::string& text, Result<T> (*parse)(const std::string&), std::vector<T>& into) {
  if (text.empty()) return ok();
  for (const auto& item : split(text, ',')) {
    auto one = parse(item);
    if (!one) return one.error();
    into.push_back(one.value());
  }
  return ok();
}

Status read_world(const SimulateFlags& flags, SimulateOptions& options) {
  if (auto s = parse_each(flags.profile, parse_profile, options.profiles); !s) return s;
  if (auto s = parse_each(flags.own_link, parse_link, options.own_links); !s) return s;
  options.timing_only = flags.timing_only;
  options.csv = flags.csv;
  return ok();
}

/// Reads options that depend on the number of devices.
Status read_scenario(const SimulateFlags& flags, const Config& config, SimulateOptions& options) {
  constexpr double an_hour = 3600;
  if (!flags.trace.empty()) {
    auto traces = make_traces(flags.trace, config.job.devices.max, config.job.seed,
                              options.stop_after.seconds > 0 ? options.stop_after.seconds : an_hour);
    if (!traces) return traces.error();
    options.rates = std::move(traces).value();
  }
  if (flags.faults.empty()) return ok();
  auto faults = load_faults(flags.faults, config.job.devices.max);
  if (!faults) return faults.error();
  options.faults = std::move(faults).value();
  return ok();
}

Result<SimulateOptions> options_of(const SimulateFlags& flags) {
  SimulateOptions options;
  auto rates = traces_of(flags.rates);
  if (!rates) return rates.error();
  options.rates = std::move(rates).value();
  const auto stop_after = parse_stop_after(flags.stop_after);
  if (!stop_after) return stop_after.error();
  options.stop_after = stop_after.value();
  if (auto s = set_duration("--profile-fixed", flags.profile_fixed, options.profile.fixed); !s)
    return s.error();
  if (auto s = set_duration("--latency", flags.latency, options.link.latency); !s) return s.error();
  if (!(flags.profile_rate > 0) || !(flags.bandwidth >= 0)) {  // the negations also reject NaN
    return Error{ErrorCode::usage, "--profile-rate must be above 0, and --bandwidth 0 or more"};
  }
  options.profile.rows_per_second = flags.profile_rate;
  options.link.bytes_per_second = flags.bandwidth * 1e6 / 8;
  options.data = flags.data;
  options.labels_per_device = flags.labels_per_device;
  if (flags.in_order) options.order = stream::Order::kept;
  options.held_out = flags.held_out;
  if (auto read = read_world(flags, options); !read) return read.error();
  return options;
}

class SimulateCommand final : public Command {
 public:
  explicit SimulateCommand(CLI::App& root)
      : app_(root.add_subcommand("simulate", "simulate the whole group in one process")) {
    config_.add_to(*app_, std::vector<std::string_view>{"--devices", "--wanted"});
    config_.without_stream();
    add_job();
    add_world();
    for (const char* option : {"--rates", "--trace", "--profile", "--own-link", "--faults", "--csv", "--data",
                               "--held-out", "--seed", "--model"})
      app_->get_option(option)->check(not_empty);
    app_->footer(simulate_footer);
  }
  [[nodiscard]] bool chosen() const override { return app_->parsed(); }

  ExitCode execute(Terminal& terminal) override {
    auto options = options_of(flags_);
    if (!options) return report_error(terminal, options.error());
    decide_keys(options.value());
    const auto loaded = load_or_report(config_, terminal);
    if (!loaded) return ExitCode::configuration;
    if (auto read = read_scenario(flags_, loaded->config, options.value()); !read)
      return report_error(terminal, read.error());
    devices::prepare_process(loaded->config.device.threads);
    StopRequest stop{0};
    const SignalHandlers handlers(stop);
    const auto result = play(terminal, *loaded, options.value(), stop);
    report(terminal, result);
    report_faults(terminal, options.value().faults, result);
    return result.exit;
  }

 private:
  void add_job() {
    auto* rates = app_->add_option("--rates", flags_.rates,
                                   "stream rate of each device in rows/s, or its trace SECOND:RATE,...; "
                                   "repeated if there are more devices")
                      ->type_name("R[,R...]")
                      ->capture_default_str();
    app_->add_option("--trace", flags_.trace, "stream model for all devices (see Traces below)")
        ->type_name("NAME[:...]")
        ->excludes(rates);
    app_->add_option("--stop-after", flags_.stop_after, "limit at which the simulation ends")
        ->type_name("rows=N|rounds=N|seconds=N")
        ->capture_default_str();
    app_->add_option("--data", flags_.data, "data set to stream (default: synthetic rows)")
        ->type_name("PATH");
    app_->add_flag("--in-order", flags_.in_order,
                   "stream the data in file order, distributed round-robin over the devices: for label "
                   "distributions that change over time")
        ->needs("--data");
    app_->add_option("--labels-per-device", flags_.labels_per_device,
                     "number of classes in the stream of each device")
        ->type_name("N")
        ->check(CLI::Range(1, 1'000'000))
        ->needs("--data");
    app_->add_option("--held-out", flags_.held_out,
                     "data set for the held-out accuracy (default: evaluate.held_out.path, or the test split "
                     "of a --data folder)")
        ->type_name("PATH");
    app_->add_option("--seed", flags_.seed, "seed of all random choices (job.seed)")
        ->type_name("N")
        ->check([](const std::string& text) {
          return parse_seed(text) ? std::string()
                                  : "'" + text + "' is not a whole number from 0 to 9223372036854775807";
        });
    app_->add_option("--model", flags_.model, "model to train (model.name)")->type_name("NAME");
    app_->add_flag("--json", flags_.json, "print the summary as one JSON object, on the last line of stdout");
  }
  void add_world() {
    app_->add_option("--profile-fixed", flags_.profile_fixed, "fixed time per batch")
        ->type_name("TIME")
        ->capture_default_str();
    app_->add_option("--profile-rate", flags_.profile_rate, "rows computed per second")
        ->capture_default_str();
    app_->add_option("--latency", flags_.latency, "latency of a message between two devices")
        ->type_name("TIME");
    app_->add_option("--bandwidth", flags_.bandwidth, "bandwidth between two devices in Mbit/s; 0: unlimited")
        ->type_name("MBIT");
    app_->add_option("--profile", flags_.profile,
                     "compute time of each device: fixed time per batch + rows per second (replaces "
                     "--profile-fixed and --profile-rate)")
        ->type_name("FIXED+RATE[,...]");
    app_->add_option("--own-link", flags_.own_link,
                     "link of each device, shared by its traffic with all peers; BURST: bytes sent without "
                     "delay after idle time (token bucket)")
        ->type_name("BANDWIDTH[/LATENCY[/BURST]][,...]");
    app_->add_option("--faults", flags_.faults, "script of faults and other events (see Faults below)")
        ->type_name("FILE");
    app_->add_option("--csv", flags_.csv,
                     "folder for result tables (CSV): rounds, each device's share of each round, accuracy, "
                     "devices, summary")
        ->type_name("FOLDER");
    app_->add_flag(
        "--timing-only", flags_.timing_only,
        "simulate times and bytes without computing gradients; synchronizes after every batch by default");
  }

  void decide_keys(const SimulateOptions& options) {
    // A job needs a size, a name and a topic. Without a file the last two are arbitrary.
    const auto unless_set = [&](const char* key, const std::string& toml) {
      if (config_.file().empty() && !config_.sets(key)) config_.set_key(key, toml);
    };
    unless_set("job.devices", std::to_string(options.rates.size()));  // one per rate
    unless_set("job.name", "\"simulated\"");
    unless_set("source.topics", "[\"rows\"]");
    if (options.timing_only) {  // policy auto needs gradients
      unless_set("sync.policy", "\"every\"");
      unless_set("sync.collective", "\"gather\"");
      unless_set("compression.policy", "\"none\"");
    }
    if (!flags_.seed.empty()) config_.set_key("job.seed", flags_.seed);
    if (!flags_.model.empty()) config_.set_key("model.name", toml_string(flags_.model));
  }

  SimulateResult play(Terminal& terminal, const LoadedConfig& loaded, const SimulateOptions& options,
                      StopRequest& stop) {
    ProgressLine line(terminal.err_screen(), terminal.interactive);
    return simulate(
        loaded, options,
        [&](double seconds, const Summary& so_far) {
          const auto accuracy =
              so_far.accuracy ? fmt::format("{:.1f} %", *so_far.accuracy * 100) : std::string("-");
          line.show(fmt::format("{:7.1f} s  {} rounds  {:.0f} rows/s  accuracy {}", seconds,
                                grouped(so_far.rounds), so_far.rows_per_s, accuracy));
        },
        stop);
  }

  void report(Terminal& terminal, const SimulateResult& result) const {
    if (result.exit != ExitCode::ok) terminal.err << "error: " << result.message << '\n';
    if (result.summary.devices.empty()) return;  // nothing was simulated
    if (flags_.json) {
      terminal.out << to_json(result.summary) << '\n';
      return;
    }
    print_summary(result.summary, terminal.out);
    terminal.out << fmt::format("  simulated {:.1f} s of the job in {}, {} events\n", result.virtual_seconds,
                                human_seconds(result.real_seconds), grouped(result.events));
  }

  /// Reports faults scheduled after the end of the simulation: they must not count as survived.
  static void report_faults(Terminal& terminal, const std::vector<Fault>& faults,
                            const SimulateResult& result) {
    const auto missed = std::count_if(faults.begin(), faults.end(), [&](const Fault& fault) {
      return fault.at_s > result.virtual_seconds;
    });
    if (missed > 0 && result.virtual_seconds > 0)
      terminal.err << fmt::format(
          "note: the last {} of {} faults did not happen, the simulation ended at {:.1f} s\n", missed,
          faults.size(), result.virtual_seconds);
  }

  CLI::App* app_;
  ConfigFlags config_;
  SimulateFlags flags_;
};

}  // namespace

std::unique_ptr<Command> make_simulate_command(CLI::App& root) {
  return std::make_unique<SimulateCommand>(root);
}

}  // namespace rivulet::runtime::cli
