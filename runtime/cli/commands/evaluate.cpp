#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "runtime/cli/command.h"
#include "runtime/cli/config_flags.h"
#include "runtime/cli/evaluation.h"

namespace rivulet::runtime::cli {
namespace {

constexpr const char* evaluate_footer = R"(Examples:
  rivulet evaluate --config device.toml /var/lib/rivulet/checkpoints/3.4500.ckpt examples/mnist/data
  rivulet evaluate --config device.toml final.state held-out.jsonl --json

Prints accuracy, precision and recall per class, and the confusion matrix; for regression, mean
absolute error and R2. Compares with a baseline: the majority class or the mean.
Runs forward passes only, in a process that did not train the state. If DATA is a folder, its test split is used.)";

std::string describe(const Evaluation& e) {
  const auto* classes = std::get_if<ClassScores>(&e.scores);
  const auto loss = fmt::format("mean loss {:.4f}", e.loss);
  auto text = fmt::format("{} on {} rows, {} parameters, digest {}\n",
                          classes ? fmt::format("accuracy {:.2f} %", 100 * classes->accuracy()) : loss,
                          e.rows, e.parameters, e.digest.hex());
  for (std::size_t i = 0; i < e.dropped.size(); ++i)
    if (e.dropped[i] > 0)
      text += fmt::format("{} more rows could not be decoded: {}\n", e.dropped[i],
                          name_of(static_cast<DropReason>(i)));
  if (classes) text += loss + "; ";
  return text + std::visit([](const auto& scores) { return cli::describe(scores); }, e.scores);
}

/// Returns the share as JSON; null if undefined.
nlohmann::ordered_json json_of(std::optional<double> value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

void add_scores(nlohmann::ordered_json& json, const ClassScores& scores) {
  constexpr std::size_t most_in_matrix = 256;
  auto classes = nlohmann::ordered_json::array();
  auto confusion = nlohmann::ordered_json::array();
  for (std::size_t c = 0; c < scores.classes(); ++c) {
    const auto& one = scores.of(c);
    classes.push_back({{"class", scores.name(c)},
                       {"rows", one.rows},
                       {"predicted", one.predicted},
                       {"precision", json_of(one.precision())},
                       {"recall", json_of(one.recall())}});
    if (scores.classes() > most_in_matrix) continue;
    std::vector<std::uint64_t> line;
    line.reserve(scores.classes());
    for (std::size_t p = 0; p < scores.classes(); ++p) line.push_back(scores.confused(c, p));
    confusion.push_back(line);
  }
  const auto majority = scores.majority();
  json["classes"] = classes;
  json["confusion"] = confusion.empty() ? nlohmann::ordered_json(nullptr) : confusion;
  json["baseline"] = {
      {"class", scores.name(majority)},
      {"accuracy", static_cast<double>(scores.of(majority).rows) / static_cast<double>(scores.rows())}};
}

void add_scores(nlohmann::ordered_json& json, const RegressionScores& scores) {
  json["mae"] = scores.mean_absolute_error();
  json["r2"] = json_of(scores.r2());
  json["baseline"] = {{"mean", scores.mean()}, {"mae", scores.mean_absolute_error_of_mean()}};
}

nlohmann::ordered_json to_json(const Evaluation& e) {
  const auto* classes = std::get_if<ClassScores>(&e.scores);
  nlohmann::ordered_json json{
      {"accuracy", classes ? nlohmann::ordered_json(classes->accuracy()) : nlohmann::ordered_json(nullptr)},
      {"loss", e.loss},
      {"rows", e.rows},
      {"parameters", e.parameters},
      {"digest", e.digest.hex()}};
  auto dropped = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < e.dropped.size(); ++i)
    if (e.dropped[i] > 0) dropped[std::string(name_of(static_cast<DropReason>(i)))] = e.dropped[i];
  json["dropped"] = dropped;
  std::visit([&](const auto& scores) { add_scores(json, scores); }, e.scores);
  return json;
}

class EvaluateCommand final : public Command {
 public:
  explicit EvaluateCommand(CLI::App& root)
      : app_(root.add_subcommand("evaluate", "evaluate a saved state on held-out rows")) {
    app_->add_option("state", state_, "state to evaluate: a checkpoint or final.state")
        ->type_name("STATE")
        ->required();
    app_->add_option("data", data_, "held-out rows: a folder (IDX) or a file")->type_name("DATA")->required();
    flags_.add_to(*app_);
    app_->add_flag("--json", json_, "one JSON object");
    app_->footer(evaluate_footer);
  }
  [[nodiscard]] bool chosen() const override { return app_->parsed(); }

  ExitCode execute(Terminal& terminal) override {
    flags_.without_stream();
    const auto loaded = load_or_report(flags_, terminal);
    if (!loaded) return ExitCode::configuration;
    const auto found = evaluate_state_file(*loaded, state_, data_);
    if (!found) return report_error(terminal, found.error());
    if (json_)
      terminal.out << to_json(found.value()).dump() << '\n';
    else
      terminal.out << describe(found.value());
    return ExitCode::ok;
  }

 private:
  CLI::App* app_;
  ConfigFlags flags_;
  std::string state_;
  std::string data_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_evaluate_command(CLI::App& root) {
  return std::make_unique<EvaluateCommand>(root);
}

}  // namespace rivulet::runtime::cli
