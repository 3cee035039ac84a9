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

/// The command line. One file per command, command_<name>.cpp; each hangs its flags under the root and is run
/// if it was the chosen one. Commands map flags to plain values and print; the work lies behind runtime/'s
/// headers.
namespace rivulet::runtime::cli {

class Output;

/// Where a command speaks. Owner: run_command_line's caller.
struct Terminal {
  std::ostream& out;
  std::ostream& err;
  bool interactive = false;  ///< out is a terminal: redraw allowed
  bool colour = false;       ///< and NO_COLOR is not set
  bool unicode = false;      ///< the locale is UTF-8: blocks instead of letters in curves
  int width = 100;           ///< columns
  std::map<std::string, std::string> environment;  ///< RIVULET_* only
  Output* out_output = nullptr;                    ///< what out and err lead to in the program
  Output* err_output = nullptr;

  /// Of out and err, what control sequences of this program's own go to (see Output).
  [[nodiscard]] std::ostream& out_screen() const;
  [[nodiscard]] std::ostream& err_screen() const;
};

/// One subcommand with the values of its flags.
class Command {
 public:
  virtual ~Command() = default;
  /// True if the command line named this one.
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

/// Parses and runs. `arguments` without the program's name. Returns the exit code of the process; wrong usage
/// is reported on terminal.err with a suggestion and is ExitCode::usage.
ExitCode run_command_line(const std::vector<std::string>& arguments, Terminal& terminal);

/// Prints the error on terminal.err; the exit code that goes with it.
ExitCode complain(Terminal& terminal, const Error& error);

/// The Terminal of this process: what stdout is, NO_COLOR, locale, width, RIVULET_* variables.
Terminal process_terminal(Output& out, Output& err, const char* const* environment);

}  // namespace rivulet::runtime::cli
