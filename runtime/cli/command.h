#pragma once
#include <iosfwd>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "runtime/process/exit_code.h"

namespace CLI {
class App;
}

/// The command line. One file per command, commands/<name>.cpp, which adds its flags under the root. Commands
/// map flags to plain values and print results; other parts of runtime/ do the work.
namespace rivulet::runtime::cli {

class Output;

/// Where a command prints. Owner: run_command_line's caller.
struct Terminal {
  std::ostream& out;
  std::ostream& err;
  bool interactive = false;                        ///< out is a terminal: redraw allowed
  bool colour = false;                             ///< interactive, and NO_COLOR is unset
  bool unicode = false;                            ///< UTF-8 locale: curves use block characters
  int width = 100;                                 ///< columns
  std::map<std::string, std::string> environment;  ///< RIVULET_* only
  Output* out_output = nullptr;                    ///< the outputs behind out and err in the program
  Output* err_output = nullptr;

  /// Return the streams for this program's own control sequences, which accompany out and err (see Output).
  [[nodiscard]] std::ostream& out_screen() const;
  [[nodiscard]] std::ostream& err_screen() const;
};

/// One subcommand with the values of its flags.
class Command {
 public:
  virtual ~Command() = default;
  /// True if the command line names this command.
  [[nodiscard]] virtual bool chosen() const = 0;
  virtual ExitCode execute(Terminal& terminal) = 0;
};

std::unique_ptr<Command> make_run_command(CLI::App& root);
std::unique_ptr<Command> make_stop_command(CLI::App& root);
std::unique_ptr<Command> make_status_command(CLI::App& root);
std::unique_ptr<Command> make_top_command(CLI::App& root);
std::unique_ptr<Command> make_demo_command(CLI::App& root);
std::unique_ptr<Command> make_feed_command(CLI::App& root);
std::unique_ptr<Command> make_broker_command(CLI::App& root);
std::unique_ptr<Command> make_peek_command(CLI::App& root);
std::unique_ptr<Command> make_simulate_command(CLI::App& root);
std::unique_ptr<Command> make_config_command(CLI::App& root);
std::unique_ptr<Command> make_validate_command(CLI::App& root);
std::unique_ptr<Command> make_checkpoint_command(CLI::App& root);
std::unique_ptr<Command> make_ledger_command(CLI::App& root);
std::unique_ptr<Command> make_decisions_command(CLI::App& root);
std::unique_ptr<Command> make_evaluate_command(CLI::App& root);
std::unique_ptr<Command> make_model_command(CLI::App& root);
std::unique_ptr<Command> make_doctor_command(CLI::App& root);
std::unique_ptr<Command> make_version_command(CLI::App& root);

/// Parses and runs a command; `arguments` excludes the program's name. Returns the exit code. Wrong usage
/// prints an error with a suggestion on terminal.err and returns ExitCode::usage.
ExitCode run_command_line(const std::vector<std::string>& arguments, Terminal& terminal);

/// Prints the error on terminal.err and returns its exit code.
ExitCode report_error(Terminal& terminal, const Error& error);

/// Describes this process's terminal: type of stdout, NO_COLOR, locale, width, RIVULET_* variables.
Terminal process_terminal(Output& out, Output& err, const char* const* environment);

}  // namespace rivulet::runtime::cli
