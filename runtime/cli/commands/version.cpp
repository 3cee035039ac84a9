#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <ostream>

#include "devices/trainer.h"
#include "rivulet_version.h"
#include "runtime/cli/command.h"
#include "stream/open.h"

namespace rivulet::runtime::cli {
namespace {

constexpr const char* version_footer = R"(Examples:
  rivulet version
  rivulet version --json      for scripts: one object with every version)";

class VersionCommand final : public Command {
 public:
  explicit VersionCommand(CLI::App& root)
      : app_(root.add_subcommand("version", "print the versions of this binary and its libraries")) {
    app_->add_flag("--json", json_, "print one JSON object");
    app_->footer(version_footer);
  }
  [[nodiscard]] bool chosen() const override { return app_->parsed(); }

  ExitCode execute(Terminal& terminal) override {
    nlohmann::ordered_json facts = {{"rivulet", RIVULET_VERSION},
                                    {"revision", RIVULET_REVISION},
                                    {"librdkafka", stream::kafka_client_version()}};
    for (const auto& [name, value] : devices::numeric_library_facts()) facts[name] = value;
    if (json_) {
      terminal.out << facts.dump() << '\n';
      return ExitCode::ok;
    }
    terminal.out << "rivulet " RIVULET_VERSION " (" RIVULET_REVISION ")\n";
    for (const auto& [name, value] : facts.items()) {
      if (name != "rivulet" && name != "revision")
        terminal.out << "  " << name << ": " << value.get<std::string>() << '\n';
    }
    return ExitCode::ok;
  }

 private:
  CLI::App* app_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_version_command(CLI::App& root) {
  return std::make_unique<VersionCommand>(root);
}

}  // namespace rivulet::runtime::cli
