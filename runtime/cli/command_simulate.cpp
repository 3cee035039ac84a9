#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "devices/trainer.h"
#include "runtime/cli/config_flags.h"
#include "runtime/cli/progress_line.h"
#include "runtime/cli/report.h"
#include "runtime/cli/text.h"
#include "runtime/signals.h"
#include "runtime/simulate.h"

namespace rivulet::runtime::cli {
namespace {

constexpr const char* simulate_footer = R"(Examples:
  rivulet simulate --data examples/mnist/data --rates 800,400,200,100 --stop-after seconds=35
  rivulet simulate --config device.toml --devices 64 --rates 50 --stop-after rounds=200
  rivulet simulate --devices 2 --rates "0:800,15:200 0:100"                a trace for each device, space between
  rivulet simulate --devices 8 --latency 20ms --bandwidth 5 --profile-rate 500 --stop-after seconds=60 --json

The same job, every device in this one process, under a clock of its own: same seed, same bytes, every time.
--bandwidth is in Mbit/s; a device takes profile-fixed + rows / profile-rate for a batch.)";

struct SimulateFlags {
  std::string rates = "100";
  std::string stop_after = "seconds=30";
  std::string profile_fixed = "1ms";
  double profile_rate = 8000;
  std::string latency = "0ms";
  double bandwidth = 0;
  std::string data;
  std::string held_out;
  std::string seed;
  std::string model;
  int devices = 0;
  bool json = false;
};

/// "800,400" is a constant for each device; with a colon every space-separated item is one device's trace.
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

bool all_silent(const std::vector<RateTrace>& traces) {
  return std::all_of(traces.begin(), traces.end(), [](const RateTrace& trace) {
    return std::all_of(trace.begin(), trace.end(), [](const auto& step) { return step.second == 0; });
  });
}

Status set_duration(const std::string& flag, const std::string& text, Duration& into) {
  const auto duration = parse_duration(text);
  if (!duration) return Error{ErrorCode::usage, fmt::format("{}: {}", flag, duration.error().message)};
  into = duration.value();
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
  if (options.stop_after.seconds <= 0 && all_silent(options.rates))
    return Error{ErrorCode::usage,
                 "--rates: every stream is silent, so --stop-after rows or rounds never comes"};
  if (auto s = set_duration("--profile-fixed", flags.profile_fixed, options.profile.fixed); !s)
    return s.error();
  if (auto s = set_duration("--latency", flags.latency, options.link.latency); !s) return s.error();
  if (!(flags.profile_rate > 0) || !(flags.bandwidth >= 0)) {  // not a number, too
    return Error{ErrorCode::usage, "--profile-rate must be above 0 and --bandwidth not below it"};
  }
  options.profile.rows_per_second = flags.profile_rate;
  options.link.bytes_per_second = flags.bandwidth * 1e6 / 8;
  options.data = flags.data;
  options.held_out = flags.held_out;
  return options;
}

class SimulateCommand final : public Command {
 public:
  explicit SimulateCommand(CLI::App& root)
      : app_(root.add_subcommand("simulate", "the whole group in one process, faster than time")) {
    config_.add_to(*app_, {"--partitions"});
    config_.without_stream();
    add_job();
    add_world();
    app_->footer(simulate_footer);
  }
  [[nodiscard]] bool chosen() const override { return app_->parsed(); }

  ExitCode execute(Terminal& terminal) override {
    const auto options = options_of(flags_);
    if (!options) return complain(terminal, options.error());
    if (flags_.devices > 0 && options.value().rates.size() > static_cast<std::size_t>(flags_.devices))
      return complain(
          terminal, Error{ErrorCode::usage, fmt::format("--devices {}, but --rates names {}", flags_.devices,
                                                        options.value().rates.size())});
    decide_keys(options.value());
    const auto loaded = load_or_complain(config_, terminal);
    if (!loaded) return ExitCode::configuration;
    devices::prepare_process(loaded->config.device.threads);
    StopRequest stop{0};
    const SignalHandlers handlers(stop);
    const auto result = play(terminal, *loaded, options.value(), stop);
    report(terminal, result);
    return result.exit;
  }

 private:
  void add_job() {
    app_->add_option("--devices", flags_.devices,
                     "devices in the group (job.devices); else one for each rate")
        ->type_name("N")
        ->check(CLI::Range(1, 1024));
    app_->add_option("--rates", flags_.rates, "rows per second of each device; may be traces SECOND:RATE,...")
        ->type_name("R[,R...]")
        ->capture_default_str();
    app_->add_option("--stop-after", flags_.stop_after, "when the group ends")
        ->type_name("rows=N|rounds=N|seconds=N")
        ->capture_default_str();
    app_->add_option("--data", flags_.data, "data set to play; without it rows are made up")
        ->type_name("PATH");
    app_->add_option("--held-out", flags_.held_out, "data set to measure accuracy on")->type_name("PATH");
    app_->add_option("--seed", flags_.seed, "job.seed")->type_name("N");
    app_->add_option("--model", flags_.model, "model.name")->type_name("NAME");
    app_->add_flag("--json", flags_.json, "last line of stdout: the summary as one object");
  }
  void add_world() {
    app_->add_option("--profile-fixed", flags_.profile_fixed, "what a batch costs whatever its size")
        ->type_name("TIME")
        ->capture_default_str();
    app_->add_option("--profile-rate", flags_.profile_rate, "rows a device computes per second")
        ->capture_default_str();
    app_->add_option("--latency", flags_.latency, "of a message between two devices")->type_name("TIME");
    app_->add_option("--bandwidth", flags_.bandwidth, "Mbit/s between two devices; 0 = endless")
        ->type_name("MBIT");
  }

  void decide_keys(const SimulateOptions& options) {
    const auto devices = flags_.devices > 0 ? static_cast<std::size_t>(flags_.devices) : options.rates.size();
    if (flags_.devices > 0 || config_.file().empty()) config_.set_key("job.devices", std::to_string(devices));
    // A job needs a name and a topic; without a file they have no other use here.
    if (config_.file().empty()) config_.set_key("job.name", "\"simulated\"");
    if (config_.file().empty()) config_.set_key("source.topics", "[\"rows\"]");
    if (!flags_.seed.empty()) config_.set_key("job.seed", flags_.seed);
    if (!flags_.model.empty()) config_.set_key("model.name", toml_string(flags_.model));
  }

  SimulateResult play(Terminal& terminal, const LoadedConfig& loaded, const SimulateOptions& options,
                      StopRequest& stop) {
    ProgressLine line(terminal.err, terminal.interactive);
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
    if (flags_.json) {
      terminal.out << to_json(result.summary) << '\n';
      return;
    }
    if (result.summary.devices.empty()) return;
    print_summary(result.summary, terminal.out);
    terminal.out << fmt::format("  {:.1f} s of the job took {} here, {} events\n", result.virtual_seconds,
                                human_seconds(result.real_seconds), grouped(result.events));
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
