#include <CLI/CLI.hpp>
#include <ostream>

#include "runtime/cli/command.h"
#include "runtime/cli/node_pages.h"
#include "runtime/cli/node_text.h"

namespace rivulet::runtime::cli {
namespace {

constexpr const char* status_footer = R"(Examples:
  rivulet status                                  the device on this machine
  rivulet status 10.0.0.7:9464 --token-file token --json
  rivulet status --ready                          for a health check: prints nothing if ready

Prints the state of a device and, from its last round, that of each device in its group.
Exit codes: 0 if ready (its group is formed and nothing prevents training); 1 if not, with the cause in the
first line; 69 if there is no answer or the token is rejected.)";

class StatusCommand final : public Command {
 public:
  explicit StatusCommand(CLI::App& root)
      : app_(root.add_subcommand("status", "show the state of a running device and its group")) {
    pages_.add_to(*app_);
    auto* ready = app_->add_flag("--ready", ready_, "check readiness only; print the cause if not ready");
    app_->add_flag("--json", json_, "print one JSON object with the members status and group")
        ->excludes(ready);
    app_->footer(status_footer);
  }
  [[nodiscard]] bool chosen() const override { return app_->parsed(); }

  ExitCode execute(Terminal& terminal) override {
    if (auto known = pages_.resolve(terminal); !known) return report_error(terminal, known.error());
    if (ready_) return readiness(terminal, true);
    const auto answer = fetch_all(pages_);
    if (!answer) return report_error(terminal, answer.error());
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
    const auto answer = pages_.fetch("/readyz");
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
