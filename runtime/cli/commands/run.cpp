#include <unistd.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "devices/trainer.h"
#include "runtime/cli/config_flags.h"
#include "runtime/cli/report.h"
#include "runtime/cli/run_line.h"
#include "runtime/node/run.h"
#include "runtime/process/signals.h"

namespace rivulet::runtime::cli {
namespace {

constexpr const char* run_footer = R"(Examples:
  rivulet run --config device.toml
  rivulet run --config job.toml --id device-2 --partitions 1 --data-dir /var/lib/rivulet/2 --http 127.0.0.1:9466
  rivulet run --config device.toml --set batch.tick=200ms --set train.clip_grad_norm=1.0
  rivulet run --config device.toml --dry-run --stop-after rows=1000     computes, but trains and commits nothing
  rivulet run --config device.toml --stop-after seconds=60 --json       last line of stdout: one JSON object
  rivulet run --config device.toml --new-run                            start over (not for a service's command line)
  RIVULET_BROKERS=kafka:9092 RIVULET_ID=$HOSTNAME RIVULET_CONFIG=/etc/rivulet/job.toml rivulet run

On a terminal it shows one status line; in a pipe it prints a line every 10 s (with --json on stderr).

SIGTERM or Ctrl-C finishes the round and exits with 0; the others wait for the device to return.
A second signal exits immediately. To stop all devices: rivulet stop.

--stop-after counts rows and rounds of the whole group, from its first view after its last regular stop (limit
reached, rivulet stop, or SIGTERM to all members). Processes killed and restarted continue the count; a later run
on the same state starts a new count. Seconds count from the start of each process, and so do rows and rounds without a
control topic.)";

class RunCommand final : public Command {
 public:
  explicit RunCommand(CLI::App& root)
      : app_(root.add_subcommand("run", "run one device: consume, train, synchronize with its peers")) {
    flags_.add_to(*app_);
    app_->add_option("--stop-after", stop_after_,
                     "limit at which the whole group stops, all devices in the same round")
        ->type_name("rows=N|rounds=N|seconds=N")
        ->envname("RIVULET_STOP_AFTER");
    app_->add_flag("--dry-run", dry_run_,
                   "consume, decode and compute gradients, without steps, checkpoints or offset commits")
        ->envname("RIVULET_DRY_RUN");
    app_->add_flag("--new-run", new_run_,
                   "start a new run from initial parameters; use it on all devices, after the job has "
                   "stopped (rivulet stop); old checkpoints are kept in checkpoints/before-N");
    app_->add_flag("--json", json_, "print the summary as one JSON object, on the last line of stdout")
        ->envname("RIVULET_JSON");
    app_->footer(run_footer);
  }
  [[nodiscard]] bool chosen() const override { return app_->parsed(); }

  ExitCode execute(Terminal& terminal) override {
    RunOptions options;
    options.dry_run = dry_run_;
    options.new_run = new_run_;
    if (dry_run_ && new_run_)
      return report_error(
          terminal,
          {ErrorCode::usage, "--dry-run and --new-run exclude each other: a dry run cannot start a new run"});
    if (!stop_after_.empty()) {
      const auto stop_after = parse_stop_after(stop_after_);
      if (!stop_after) return report_error(terminal, stop_after.error());
      options.stop_after = stop_after.value();
    }
    const auto loaded = load_or_report(flags_, terminal);
    if (!loaded) return ExitCode::configuration;
    devices::prepare_process(loaded->config.device.threads);
    StopRequest stop{0};
    const SignalHandlers handlers(stop);
    const auto result = run_shown(terminal, *loaded, options, stop);
    report(terminal, result);
    return result.exit;
  }

 private:
  /// The status line ends before the summary begins.
  RunResult run_shown(Terminal& terminal, const LoadedConfig& loaded, RunOptions& options,
                      StopRequest& stop) const {
    RunLine line(terminal, json_ ? terminal.err_screen() : terminal.out_screen(),
                 json_ ? STDERR_FILENO : STDOUT_FILENO, loaded.config);
    options.watch = [&line](const NodeStatus& status, TimePoint now) { line.look(status, now); };
    return run_device(loaded, options, stop);
  }

  void report(Terminal& terminal, const RunResult& result) const {
    if (result.exit != ExitCode::ok) terminal.err << "error: " << result.message << '\n';
    if (json_) {
      terminal.out << to_json(result.summary) << '\n';
    } else if (result.exit == ExitCode::ok || result.summary.rounds > 0) {
      print_summary(result.summary, terminal.out);
      if (!result.state_file.empty()) terminal.out << "  final state: " << result.state_file << '\n';
    }
  }

  CLI::App* app_;
  ConfigFlags flags_;
  std::string stop_after_;
  bool dry_run_ = false;
  bool new_run_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_run_command(CLI::App& root) {
  return std::make_unique<RunCommand>(root);
}

}  // namespace rivulet::runtime::cli
