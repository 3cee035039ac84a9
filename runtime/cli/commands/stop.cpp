#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "runtime/cli/child.h"
#include "runtime/cli/config_flags.h"
#include "runtime/cli/stop_job.h"
#include "runtime/cli/text.h"
#include "runtime/process/signals.h"

namespace rivulet::runtime::cli {
namespace {

constexpr int reading_step_ms = 10;
constexpr const char* stop_footer = R"(Examples:
  rivulet stop --config device.toml
  rivulet stop --job mnist --brokers localhost:9092 --timeout 1m

All devices finish the same round, save a last checkpoint, commit their offsets and exit with 0, including devices
that wait for others. A restart resumes the job. To stop only one device, send it SIGTERM; the others wait for it.
Exit codes: 0 if all have stopped, 75 if a device (named in the message) has not confirmed in time,
69 if the control topic does not exist.)";

class StopCommand final : public Command {
 public:
  explicit StopCommand(CLI::App& root)
      : app_(root.add_subcommand("stop", "stop all devices of a job in the same round")) {
    flags_.add_to(*app_, {"--brokers"});
    app_->add_option("--job", job_, "name of the job (job.name)")->type_name("NAME");
    app_->add_option("--timeout", timeout_, "maximum time to wait until all devices have stopped")
        ->type_name("DURATION")
        ->capture_default_str();
    app_->footer(stop_footer);
  }
  [[nodiscard]] bool chosen() const override { return app_->parsed(); }

  ExitCode execute(Terminal& terminal) override {
    const auto timeout = parse_duration(timeout_);
    if (!timeout || timeout.value() <= Duration(0))
      return report_error(terminal, {ErrorCode::usage, "--timeout: '" + timeout_ +
                                                           "' is not a duration above 0, such as 30s or 2m"});
    if (job_.empty() && flags_.file().empty())
      return report_error(terminal, {ErrorCode::usage, "no job given; use --job and --brokers, or --config"});
    if (!job_.empty()) flags_.set_key("job.name", toml_string(job_));
    flags_.without_stream();
    const auto loaded = load_or_report(flags_, terminal);
    if (!loaded) return ExitCode::configuration;
    auto topic = ControlTopic::open(loaded->config, false, [] { pause_ms(reading_step_ms); });
    if (!topic) return report_error(terminal, topic.error());
    StopRequest interrupted{0};
    const SignalHandlers handlers(interrupted);
    const auto say = [&terminal](const std::string& line) { terminal.out << line << '\n' << std::flush; };
    const auto stopped = stop_job(topic.value(), timeout.value(), interrupted, say);
    return stopped ? report(terminal, stopped.value(), loaded->config.job.name)
                   : report_error(terminal, stopped.error());
  }

 private:
  ExitCode report(Terminal& terminal, const StopReport& report, const std::string& job) const {
    for (const auto& device : report.silent) {
      const auto who = fmt::format("{} (host {}, pid {})", device.id, device.host, device.pid);
      if (device.lost) {
        terminal.out << who << " did not confirm: its peers had lost it before the stop\n";
      } else {
        terminal.err << who << " has not confirmed that it stopped\n";
      }
    }
    if (report.complete()) {
      terminal.out << "job " << job << " has stopped\n";
      return ExitCode::ok;
    }
    return report_error(
        terminal, {ErrorCode::timed_out,
                   fmt::format("not all devices of job {} confirmed their stop within {}; those named above "
                               "may have been killed or disconnected. The STOP stays in the control topic: a "
                               "device that reads it later stops then, and --new-run can start over",
                               job, timeout_)});
  }

  CLI::App* app_;
  ConfigFlags flags_;
  std::string job_;
  std::string timeout_ = "30s";
};

}  // namespace

std::unique_ptr<Command> make_stop_command(CLI::App& root) {
  return std::make_unique<StopCommand>(root);
}

}  // namespace rivulet::runtime::cli
