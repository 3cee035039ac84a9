#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "runtime/cli/checks/checks.h"
#include "runtime/cli/config_flags.h"

namespace rivulet::runtime::cli {
namespace {

constexpr const char* doctor_footer = R"(Examples:
  rivulet doctor                          versions and properties of this binary and machine
  rivulet doctor --config device.toml     also the data directory and port in a configuration
  rivulet doctor --json                   one JSON array, for scripts

Exits with 69 if a check fails. For broker and topics: rivulet validate device.toml --environment)";

class DoctorCommand final : public Command {
 public:
  explicit DoctorCommand(CLI::App& root)
      : app_(root.add_subcommand("doctor", "check this device: versions, CPU, memory, ports")) {
    flags_.add_to(*app_, {"--data-dir", "--http"});
    app_->add_flag("--json", json_, "one JSON array");
    app_->footer(doctor_footer);
  }
  [[nodiscard]] bool chosen() const override { return app_->parsed(); }

  ExitCode execute(Terminal& terminal) override {
    // Falls back to defaults if the configuration is unusable: doctor must work on broken setups.
    const auto loaded = load_config(flags_.input(terminal));
    if (!flags_.file().empty()) print_problems(loaded.problems, terminal.err);
    auto checks = version_checks();
    checks.push_back(gloo_check());
    for (auto& check : machine_checks()) checks.push_back(std::move(check));
    if (!flags_.file().empty() && count_errors(loaded.problems) == 0) {
      checks.push_back(memory_check(loaded.config));
      for (auto& check : size_checks(loaded.config)) checks.push_back(std::move(check));
    }
    checks.push_back(data_dir_check(loaded.config));
    checks.push_back(port_check(loaded.config.http.listen));
    print(terminal, checks);
    if (!flags_.file().empty() && count_errors(loaded.problems) > 0) return ExitCode::configuration;
    const bool failed =
        std::any_of(checks.begin(), checks.end(), [](const Check& c) { return c.level == CheckLevel::fail; });
    return failed ? ExitCode::unavailable : ExitCode::ok;
  }

 private:
  void print(Terminal& terminal, const std::vector<Check>& checks) const {
    if (json_) {
      terminal.out << checks_to_json(checks) << '\n';
      return;
    }
    for (const auto& check : checks) terminal.out_screen() << render_check(check, terminal.colour) << '\n';
  }

  CLI::App* app_;
  ConfigFlags flags_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_doctor_command(CLI::App& root) {
  return std::make_unique<DoctorCommand>(root);
}

}  // namespace rivulet::runtime::cli
