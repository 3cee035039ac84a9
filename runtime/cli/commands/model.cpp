#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <span>

#include "devices/script_file.h"
#include "devices/subprocess.h"
#include "runtime/cli/command.h"
#include "runtime/cli/text.h"
#include "runtime/state/file_kind.h"

namespace rivulet::runtime::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* model_footer = R"(Examples:
  rivulet model inspect model.pt --shape 1,28,28          check that it trains on rows of this shape
  rivulet model inspect model.pt --shape 6 --json

Your own model is a module saved by torch.jit.script(module).save("model.pt"). It takes [rows, SHAPE] and
returns [rows, classes]. Train it with model.name = "torchscript", model.file and model.sha256. `rivulet checkpoint export`
exports its trained parameters under the names listed here.
This runs code in the file: inspect only files you trust.)";

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Json tensors_json(const std::vector<devices::ScriptTensor>& tensors) {
  auto all = Json::array();
  for (const auto& tensor : tensors) all.push_back({{"name", tensor.name}, {"shape", tensor.shape}});
  return all;
}

class ModelCommand final : public Command {
 public:
  explicit ModelCommand(CLI::App& root)
      : app_(root.add_subcommand("model", "custom models: inspect")),
        inspect_(app_->add_subcommand("inspect", "describe a TorchScript file and check that it runs")) {
    app_->require_subcommand(1);
    app_->footer(model_footer);
    inspect_->footer(model_footer);
    inspect_->add_option("FILE", file_, "model saved by torch.jit")->required()->type_name("FILE");
    inspect_->add_option("--shape", shape_, "shape of one row, such as 1,28,28")
        ->required()
        ->delimiter(',')
        ->type_name("N,...")
        ->check(CLI::Range(1, 1'000'000));
    inspect_->add_flag("--json", json_, "one JSON object");
  }
  [[nodiscard]] bool chosen() const override { return app_->parsed(); }

  ExitCode execute(Terminal& terminal) override {
    const devices::Patience patience;
    auto said = devices::run_in_subprocess(
        [this]() -> Result<std::string> {
          const auto facts = devices::inspect_script(file_, shape_);
          if (!facts) return facts.error();
          return json_ ? json_of(facts.value()) : text_of(facts.value());
        },
        patience);
    if (said) {
      terminal.out << said.value();
      return ExitCode::ok;
    }
    Error error = said.error();
    if (const std::string other = other_kind(); !other.empty()) error.message = other;
    if (error.code == ErrorCode::timed_out)
      error = {ErrorCode::io,
               fmt::format("inspection did not finish within {:.0f} s", to_seconds(patience.deadline))};
    if (!error.message.starts_with(file_)) error.message = file_ + ": " + error.message;
    return report_error(terminal, error);
  }

 private:
  /// Explains from its first bytes why the file cannot be a model; empty if unknown.
  [[nodiscard]] std::string other_kind() const {
    std::ifstream file(file_, std::ios::binary);
    std::array<char, 64> begin{};
    file.read(begin.data(), begin.size());
    const auto kind =
        kind_of_file(std::as_bytes(std::span(begin).first(static_cast<std::size_t>(file.gcount()))));
    if (kind.empty() || kind.find("torch") != std::string_view::npos) return "";
    return fmt::format("not a TorchScript model but {}; save the model with torch.jit.script(module).save()",
                       kind);
  }
  static std::string json_of(const devices::ScriptFacts& f) {
    return Json{{"sha256", f.sha256},
                {"bytes", f.bytes},
                {"signature", f.signature},
                {"parameters", tensors_json(f.parameters)},
                {"buffers", tensors_json(f.buffers)},
                {"parameter_numbers", f.parameter_numbers},
                {"buffer_numbers", f.buffer_numbers},
                {"output_shape", {f.outputs}},
                {"one_row", f.one_row.empty() ? Json(nullptr) : Json(f.one_row)},
                {"forward_ms", f.forward_ms},
                {"backward_ms", f.backward_ms}}
               .dump() +
           '\n';
  }

  [[nodiscard]] std::string text_of(const devices::ScriptFacts& f) const {
    std::string out =
        fmt::format("{}: {}, {}\n", file_, human_bytes(static_cast<double>(f.bytes)), f.signature);
    for (const auto& tensor : f.parameters)
      out += fmt::format("  {:<32} {}\n", tensor.name, shape_text(tensor.shape));
    for (const auto& tensor : f.buffers)
      out += fmt::format("  {:<32} {} (buffer)\n", tensor.name, shape_text(tensor.shape));
    out += fmt::format(
        "{} parameters, {} buffers; for a row of shape {}: output {}, forward {:.2f} ms, backward {:.2f} "
        "ms\n",
        grouped(f.parameter_numbers), grouped(f.buffer_numbers), shape_text(shape_), shape_text({f.outputs}),
        f.forward_ms, f.backward_ms);
    out += fmt::format("[model]\nname = \"torchscript\"\nfile = {}\nsha256 = \"{}\"\n{}", toml_string(file_),
                       f.sha256, outputs_of(f));
    if (!f.one_row.empty()) out += "[batch]\nmin = 2  # fails with a single row: " + f.one_row + "\n";
    return out;
  }
  /// The key for the number of outputs; train.loss defines their meaning.
  static std::string outputs_of(const devices::ScriptFacts& f) {
    if (f.outputs == 1) return "outputs = 1  # for train.loss = \"mse\"\n";
    return fmt::format("classes = {}\n",
                       f.outputs);  // mse compares the single target of a row with one output
  }

  CLI::App* app_;
  CLI::App* inspect_;
  std::string file_;
  std::vector<std::int64_t> shape_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_model_command(CLI::App& root) {
  return std::make_unique<ModelCommand>(root);
}

}  // namespace rivulet::runtime::cli
