#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <ostream>

#include "runtime/cli/command.h"
#include "runtime/cli/config_flags.h"
#include "runtime/cli/evaluation.h"

namespace rivulet::runtime::cli {
namespace {

constexpr const char* evaluate_footer = R"(Examples:
  rivulet evaluate --config device.toml /var/lib/rivulet/checkpoints/3.4500.ckpt examples/mnist/data
  rivulet evaluate --config device.toml final.state held-out.jsonl --json

Forward passes only, in a process that did not train the state. A folder is read as its test split.)";

class EvaluateCommand final : public Command {
 public:
  explicit EvaluateCommand(CLI::App& root)
      : app_(root.add_subcommand("evaluate", "measure a saved state on held-out rows")) {
    app_->add_option("state", state_, "a checkpoint or final.state")->type_name("STATE")->required();
    app_->add_option("data", data_, "held-out rows: a folder (IDX) or a file")->type_name("DATA")->required();
    flags_.add_to(*app_);
    app_->add_flag("--json", json_, "one JSON object");
    app_->footer(evaluate_footer);
  }
  [[nodiscard]] bool chosen() const override { return app_->parsed(); }

  ExitCode execute(Terminal& terminal) override {
    flags_.without_stream();
    const auto loaded = load_or_complain(flags_, terminal);
    if (!loaded) return ExitCode::configuration;
    const auto found = evaluate_state_file(*loaded, state_, data_);
    if (!found) return complain(terminal, found.error());
    const auto& e = found.value();
    if (json_)
      terminal.out << nlohmann::ordered_json{{"accuracy", e.accuracy ? nlohmann::ordered_json(*e.accuracy)
                                                                     : nlohmann::ordered_json(nullptr)},
                                             {"loss", e.loss},
                                             {"rows", e.rows},
                                             {"parameters", e.parameters},
                                             {"digest", e.digest.hex()}}
                          .dump()
                   << '\n';
    else
      terminal.out << fmt::format(
          "{} of {} rows, {} parameters, digest {}\n",
          e.accuracy ? fmt::format("{:.2f} %", 100 * *e.accuracy) : fmt::format("mean loss {:.4f}", e.loss),
          e.rows, e.parameters, e.digest.hex());
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
