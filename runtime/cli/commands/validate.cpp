#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "runtime/cli/checks/checks.h"
#include "runtime/cli/config_flags.h"
#include "runtime/config/secrets.h"
#include "runtime/node/node.h"
#include "runtime/status/http/access.h"

namespace rivulet::runtime::cli {
namespace {

constexpr const char* validate_footer = R"(Examples:
  rivulet validate device.toml                    syntax, keys, values, files, and every librdkafka property
  rivulet validate device.toml --environment      also the broker, topics, device, data directory, port
  rivulet validate device.toml --json             for CI: one JSON object with problems and checks

Exits with 0 if valid, 78 if the configuration is wrong, or 69 if a dependency is missing.)";

class ValidateCommand final : public Command {
 public:
  explicit ValidateCommand(CLI::App& root)
      : app_(root.add_subcommand("validate", "check a configuration before running it")) {
    app_->add_option("file", file_, "configuration to check (or --config)")->type_name("FILE");
    flags_.add_to(*app_);
    app_->add_flag("-e,--environment", environment_,
                   "also check the broker, topics, device, data directory and port");
    app_->add_flag("--json", json_, "print one JSON object with problems and checks");
    app_->footer(validate_footer);
  }
  [[nodiscard]] bool chosen() const override { return app_->parsed(); }

  ExitCode execute(Terminal& terminal) override {
    if (!file_.empty()) flags_.set_file(file_);
    auto loaded = load_config(flags_.input(terminal));
    add_property_problems(loaded);
    add_token(loaded);
    std::vector<Check> checks;
    add_learner_and_memory(loaded, checks);
    const bool right = count_errors(loaded.problems) == 0;
    if (right && environment_) {
      add_broker_and_rows(loaded.config, checks);
      for (auto& check : peer_checks(loaded.config)) checks.push_back(std::move(check));
      checks.push_back(device_check(loaded.config));
      for (auto& check : autocast_checks(loaded.config, processor_flags()))
        checks.push_back(std::move(check));
      checks.push_back(data_dir_check(loaded.config));
      checks.push_back(port_check(loaded.config.http.listen));
      checks.push_back(token_check(loaded.config));
    }
    for (Check& check : checks) {
      check.value = masked(std::move(check.value), loaded.secrets);
      check.hint = masked(std::move(check.hint), loaded.secrets);
    }
    print(terminal, loaded, checks, right);
    if (!right) return ExitCode::configuration;
    return count_failed(checks) == 0 ? ExitCode::ok : ExitCode::unavailable;
  }

 private:
  static std::ptrdiff_t count_failed(const std::vector<Check>& checks) {
    return std::ranges::count(checks, CheckLevel::fail, &Check::level);
  }

  /// Checks the token file: a device that cannot read its token would exit immediately.
  static void add_token(LoadedConfig& loaded) {
    const auto& http = loaded.config.http;
    if (http.listen == "off" || http.token_file.empty()) return;
    if (const auto access = Access::from_file(http.token_file); !access)
      add_problem_at(loaded, "http.token_file", access.error().message);
  }

  /// Checks that the rows fit the model, and that the model fits the memory. Adds the sum of the memory plan
  /// if it fits, otherwise its table as a problem.
  static void add_learner_and_memory(LoadedConfig& loaded, std::vector<Check>& checks) {
    if (count_errors(loaded.problems) > 0) return;
    Check memory = memory_check(loaded.config);
    if (memory.level == CheckLevel::ok) {
      checks.push_back(std::move(memory));
      for (auto& check : size_checks(loaded.config)) checks.push_back(std::move(check));
      return;
    }
    loaded.problems.push_back({.message = memory.value});
  }

  /// Checks rows only if the broker checks succeeded.
  static void add_broker_and_rows(const Config& config, std::vector<Check>& checks) {
    const auto failed = count_failed(checks);
    for (auto& check : broker_checks(config)) checks.push_back(std::move(check));
    if (count_failed(checks) > failed) return;
    for (auto& check : claim_checks(config)) checks.push_back(std::move(check));
    for (auto& check : row_checks(config)) checks.push_back(std::move(check));
  }

  void print(Terminal& terminal, const LoadedConfig& loaded, const std::vector<Check>& checks,
             bool right) const {
    if (json_) {
      print_json(terminal, loaded, checks, right);
      return;
    }
    print_problems(loaded.problems, terminal.err);
    for (const auto& check : checks) terminal.out_screen() << render_check(check, terminal.colour) << '\n';
    if (!right) return;
    terminal.out << (flags_.file().empty() ? "the configuration" : flags_.file()) << verdict(checks) << '\n';
  }

  /// Text after the file's name: "valid" means that a device can start and train.
  static std::string verdict(const std::vector<Check>& checks) {
    const auto count = [&checks](CheckLevel level) {
      return std::ranges::count(checks, level, &Check::level);
    };
    const auto many = [](std::ptrdiff_t n, const char* what) {
      return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
    };
    if (const auto failed = count(CheckLevel::fail); failed > 0)
      return fmt::format(" has no errors, but cannot run here: {} failed", many(failed, "check"));
    const auto warned = count(CheckLevel::warn);
    return " is valid" + (warned > 0 ? fmt::format(", with {}", many(warned, "warning")) : "");
  }

  static void print_json(Terminal& terminal, const LoadedConfig& loaded, const std::vector<Check>& checks,
                         bool right) {
    auto problems = nlohmann::ordered_json::array();
    for (const auto& p : loaded.problems) {
      problems.push_back({{"file", p.file},
                          {"line", p.line},
                          {"column", p.column},
                          {"level", p.warning ? "warning" : "error"},
                          {"message", p.message},
                          {"hint", p.hint}});
    }
    const nlohmann::ordered_json all = {{"valid", right},
                                        {"problems", problems},
                                        {"checks", nlohmann::ordered_json::parse(checks_to_json(checks))}};
    terminal.out << all.dump() << '\n';
  }

  CLI::App* app_;
  ConfigFlags flags_;
  std::string file_;
  bool environment_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_validate_command(CLI::App& root) {
  return std::make_unique<ValidateCommand>(root);
}

}  // namespace rivulet::runtime::cli
