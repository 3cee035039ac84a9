#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <ostream>

#include "devices/trainer.h"
#include "runtime/cli/demo/demo.h"
#include "runtime/cli/demo/demo_plan.h"
#include "runtime/cli/evaluation.h"
#include "runtime/cli/ledger.h"
#include "runtime/cli/report.h"
#include "runtime/cli/text.h"
#include "runtime/process/signals.h"

namespace rivulet::runtime::cli {
namespace {

constexpr const char* demo_footer = R"(Examples:
  rivulet demo                                    four devices, MNIST at 800, 400, 200 and 100 rows/s, 40 seconds
  rivulet demo --devices 2 --rates 1000,50        streams with very different rates
  rivulet demo --model mlp --seconds 15 --seed 7
  rivulet demo --elastic                          kills a device for good, adds one, stops one; the others train on
  rivulet demo --keep /tmp/demo                   keeps configuration, logs and final states there
  rivulet demo --brokers localhost:9092           on your Kafka; the topics are named rivulet-demo-<pid>
  rivulet demo --json | tail -1                   the summary as one JSON object
  kill -9 PID                                     in a second terminal: kills a device; the demo restarts it, its
                                                  peers wait, the group resumes, no row is lost

Halfway through, the rate of the slowest stream is multiplied by four. Ctrl-C stops all processes.)";

class DemoCommand final : public Command {
 public:
  explicit DemoCommand(CLI::App& root)
      : app_(root.add_subcommand("demo", "watch several devices train one model through Kafka")) {
    app_->add_option("--devices", options_.devices, "number of devices (default: 4)")
        ->type_name("N")
        ->check(CLI::Range(1, 64));
    app_->add_option("--rates", options_.rates, "rows per second for each device (default: 800,400,200,100)")
        ->type_name("R[,R...]");
    app_->add_option("--seconds", options_.seconds, "training time in seconds")
        ->type_name("S")
        ->capture_default_str();
    app_->add_option("--model", options_.model, "model to train: lenet5, mlp or linear")
        ->type_name("NAME")
        ->capture_default_str();
    app_->add_option("--seed", options_.seed, "seed of all random choices")
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 60U))
        ->capture_default_str();
    app_->add_option("--keep", options_.keep,
                     "folder for configuration, logs and final states (default: temporary)")
        ->type_name("DIR");
    app_->add_option("--data", options_.data, "folder with the four MNIST files (default: RIVULET_DATA)")
        ->type_name("DIR");
    app_->add_option("--brokers", options_.brokers,
                     "existing Kafka brokers to use instead of the embedded broker")
        ->type_name("HOST:PORT");
    app_->add_flag("--elastic", options_.elastic,
                   "kill a device for good, add another and stop a third while the group trains");
    app_->add_flag("--json", json_, "print the summary as one JSON object, on the last line of stdout");
    app_->footer(demo_footer);
  }
  [[nodiscard]] bool chosen() const override { return app_->parsed(); }

  ExitCode execute(Terminal& terminal) override {
    StopRequest stop{0};
    const SignalHandlers handlers(stop, SignalHandlers::Second::raises);
    devices::prepare_process(1);
    auto plan = plan_demo(options_);
    if (!plan) return report_error(terminal, plan.error());
    const auto exit = play(terminal, plan.value(), stop);
    std::error_code ignored;
    if (!plan.value().keep) std::filesystem::remove_all(plan.value().directory, ignored);
    return exit;
  }

 private:
  ExitCode play(Terminal& terminal, DemoPlan& plan, const StopRequest& stop) {
    if (auto possible = check_model(configuration_of(plan, "localhost:9092")); !possible) {
      return report_error(terminal, possible.error());
    }
    // With --json only the result goes to stdout. Redrawing needs a terminal.
    const bool draws = terminal.interactive && !json_;
    auto& show = json_ ? terminal.err : draws ? terminal.out_screen() : terminal.out;
    show << fmt::format("{} devices, streams of {} rows/s, from second {:g} on {}; {:g} s; Ctrl-C stops it\n",
                        plan.devices(), text_of(plan.rates), plan.change_at, text_of(plan.second_rates),
                        plan.seconds);
    if (plan.elastic) show << words_of_plan(*plan.elastic) << '\n';
    show << std::flush;
    Demo demo(plan, terminal, show, draws, stop);
    const auto outcome = demo.play();
    return report(terminal, show, plan, outcome);
  }

  /// The job's configuration as each device reads it.
  static LoadedConfig configuration_of(const DemoPlan& plan, const std::string& brokers) {
    ConfigInput input;
    if (std::filesystem::exists(job_file(plan))) input.file = job_file(plan).string();
    input.flags = {{"job.name", toml_string(plan.job)},
                   {"job.devices", job_devices(plan)},
                   {"model.name", toml_string(plan.model)},
                   {"source.topics", "[" + toml_string(plan.topic) + "]"},
                   {"source.kafka.properties.bootstrap.servers", toml_string(brokers)}};
    return load_config(input);
  }

  static std::string words_of_plan(const ElasticPlan& elastic) {
    return fmt::format(
        "second {:g}: {} is killed for good; {:g}: {} takes its partition; {:g}: {} is stopped; the others "
        "train on",
        elastic.kill_at, device_name(elastic.killed), elastic.add_at, device_name(elastic.added),
        elastic.stop_at, device_name(elastic.stopped));
  }

  static std::string text_of(const std::vector<double>& rates) {
    std::string text;
    for (const auto rate : rates) text += fmt::format("{}{:g}", text.empty() ? "" : ", ", rate);
    return text;
  }

  ExitCode report(Terminal& terminal, std::ostream& show, const DemoPlan& plan, const DemoOutcome& outcome) {
    auto summary = merge_summaries(outcome.summaries);
    summary.changes = outcome.changes;
    const bool played = static_cast<bool>(outcome.played);
    const bool interrupted = !played && outcome.played.error().code == ErrorCode::cancelled;
    const auto measured = played ? measure_all(plan, summary) : measure_remainder(plan);
    // Measured here, in a process that did not train.
    summary.accuracy = measured ? measured.value().accuracy() : std::nullopt;
    show << '\n' << headline(outcome, interrupted) << '\n';
    if (!played && !interrupted) report_error(terminal, outcome.played.error());
    if (!summary.devices.empty()) print_summary(summary, show);
    print_changes(show, outcome, played);
    print_measured(show, summary, measured, played);
    const auto books = played ? check_ledger(plan, outcome) : Result<std::string>(std::string());
    if (!books) show << "  error: " << books.error().message << '\n';
    if (books && played) show << "  " << books.value() << '\n';
    if (played || interrupted) print_next(show);
    if (plan.keep) show << "Configuration, logs and final states are in " << plan.directory.string() << '\n';
    if (json_) terminal.out << to_json(summary) << '\n';
    if (!played) return interrupted ? ExitCode::ok : exit_code_for(outcome.played.error().code);
    const bool good =
        measured && books && summary.parameters_equal && outcome.complete && outcome.changes_complete;
    return good ? ExitCode::ok : ExitCode::failure;
  }

  static std::string headline(const DemoOutcome& outcome, bool interrupted) {
    const auto after = human_seconds(outcome.seconds);
    if (interrupted) return fmt::format("Interrupted after {}; all processes have exited.", after);
    if (!outcome.played) return fmt::format("Failed after {}; all processes have exited.", after);
    return fmt::format("Result after {}:", after);
  }

  static std::string state_of(const DemoPlan& plan, std::size_t device) {
    return (device_directory(plan, device) / "final.state").string();
  }

  /// Reads and compares the final states of all devices that have stayed, and evaluates one.
  static Result<Evaluation> measure_all(const DemoPlan& plan, Summary& summary) {
    const auto loaded = configuration_of(plan, plan.brokers);
    auto first = evaluate_state_file(loaded, state_of(plan, 0), plan.data);
    if (!first) return first.error();
    for (std::size_t i = 1; i < plan.processes(); ++i) {
      if (!plan.stays(i)) continue;
      const auto digest = digest_of_state_file(loaded, state_of(plan, i));
      if (!digest) return digest.error();
      ++summary.digests_compared;
      if (digest.value() != first.value().digest) summary.parameters_equal = false;
    }
    return first;
  }

  /// Compares the group's ledger with the final log ends of the broker.
  static Result<std::string> check_ledger(const DemoPlan& plan, const DemoOutcome& outcome) {
    const auto loaded = configuration_of(plan, plan.brokers);
    const auto state = inspect_state_file(loaded, state_of(plan, 0));
    if (!state) return state.error();
    if (!outcome.log_ends) return outcome.log_ends.error();
    auto books = ledger_of(state.value(), loaded.config.source.topics, plan.topic);
    for (auto& one : books)
      one.ends = outcome.log_ends.value().at(static_cast<std::size_t>(one.id.partition));
    auto verdict = verdict_on(books);
    if (verdict.balanced) return std::move(verdict.text);
    return Error{ErrorCode::io, "the ledger does not balance: " + verdict.text};
  }

  /// After an early exit the devices may have stopped in different rounds or left no state: one state
  /// suffices.
  static Result<Evaluation> measure_remainder(const DemoPlan& plan) {
    for (std::size_t i = 0; i < plan.devices(); ++i) {
      if (!std::filesystem::exists(state_of(plan, i))) continue;
      return evaluate_state_file(configuration_of(plan, plan.brokers), state_of(plan, i), plan.data);
    }
    return Error{ErrorCode::io, "no device saved a final state to evaluate"};
  }

  static void print_changes(std::ostream& show, const DemoOutcome& outcome, bool played) {
    for (const GroupChange& change : outcome.changes)
      show << fmt::format("  second {:.1f}: {}\n", change.at_s, words_of_change(change));
    if (played && !outcome.changes_complete)
      show << "  error: the training time was over before the group had continued from every change\n";
  }

  static void print_measured(std::ostream& show, const Summary& summary, const Result<Evaluation>& measured,
                             bool played) {
    if (!measured) {
      show << (played ? "  error: " : "  ") << measured.error().message << '\n';
      return;
    }
    const auto& m = measured.value();
    show << fmt::format(
        "  accuracy measured by this process on {} held-out images, with {} parameters, digest {}\n",
        grouped(m.rows), grouped(m.parameters), m.digest.hex());
    if (!summary.parameters_equal) show << "  error: the final states of the devices differ\n";
  }

  static void print_next(std::ostream& show) {
    show << "\nNext steps:\n"
            "  rivulet demo --devices 2 --rates 1000,50                                   different stream "
            "rates\n"
            "  rivulet config init --from-topic TOPIC --brokers HOST:PORT > device.toml   your own Kafka and "
            "rows\n"
            "  rivulet run --help                                                         one device, as a "
            "container would start it\n"
            "This program: "
         << own_program().string() << '\n';
  }

  CLI::App* app_;
  DemoOptions options_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_demo_command(CLI::App& root) {
  return std::make_unique<DemoCommand>(root);
}

}  // namespace rivulet::runtime::cli
