#include <CLI/CLI.hpp>
#include <ostream>

#include "runtime/cli/command.h"
#include "runtime/cli/node_pages.h"
#include "runtime/cli/node_text.h"

namespace rivulet::runtime::cli {
namespace {

constexpr const char* status_footer = R"(Examples:
  rivulet status                                  of the device on this machine
  rivulet status 10.0.0.7:9464 --token-file token --json
  rivulet status --ready                          for a health check: prints nothing when all is well

Prints the state of a device and, from its last round, of each device of its group.
Exit codes: 0 when it is ready: its group is formed, and nothing keeps its rows from being trained; 1 when not, and its
first line names the cause; 69 when nobody answers, or not to this token.)";

class StatusCommand final : public Command {
 public:
  explicit StatusCommand(CLI::App& root)
      : app_(root.add_subcommand("status", "the state of a running device and its group")) {
    pages_.add_to(*app_);
    auto* ready = app_->add_flag("--ready", ready_, "only whether it is ready, and why not");
    app_->add_flag("--json", json_, "one JSON object: status, group")->excludes(ready);
    app_->footer(status_footer);
  }
  [[nodiscard]] bool chosen() const override { return app_->parsed(); }

  ExitCode execute(Terminal& terminal) override {
    if (auto known = pages_.resolve(terminal); !known) return complain(terminal, known.error());
    if (ready_) return readiness(terminal, true);
    const auto answer = ask_all(pages_);
    if (!answer) return complain(terminal, answer.error());
    if (json_) {
      terminal.out << R"({"status":)" << without_end(answer.value().status) << R"(,"group":)"
                   << without_end(answer.value().group) << "}\n";
      return readiness(terminal, false);
    }
    for (const auto& line :
         render_report(answer.value().report, terminal.interactive ? terminal.width : 1000))
      terminal.out << line << '\n';
    return readiness(terminal, false);
  }

 private:
  static std::string without_end(std::string text) {
    while (text.ends_with('\n')) text.pop_back();
    return text;
  }

  ExitCode readiness(Terminal& terminal, bool aloud) const {
    const auto answer = pages_.ask("/readyz");
    const int status = answer ? answer.value().status : 0;
    if (status == 200) return ExitCode::ok;
    const Error why = answer ? pages_.refusal("/readyz", answer.value()) : answer.error();
    if (aloud) terminal.err << "error: " << why.message << '\n';
    return status == 503 ? ExitCode::failure : exit_code_for(why.code);
  }

  CLI::App* app_;
  NodePages pages_;
  bool ready_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_status_command(CLI::App& root) {
  return std::make_unique<StatusCommand>(root);
}

}  // namespace rivulet::runtime::cli
