#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <ostream>

#include "core/nearest.h"
#include "rivulet_version.h"
#include "runtime/cli/command.h"
#include "runtime/cli/output.h"
#include "runtime/cli/text.h"

namespace rivulet::runtime::cli {
namespace {

constexpr const char* root_footer = R"(Start here:
  rivulet demo                                     watch four devices train one model through Kafka (under a minute)
  rivulet config init > device.toml                an annotated configuration to start from
  rivulet validate device.toml --environment       check it, and the broker, topics and machine
  rivulet run --config device.toml                 run one device until it is stopped

Help of a command: rivulet COMMAND --help
Exit codes: 0 ok, 1 failure, 2 usage, 69 a dependency is unavailable, 70 watchdog, 75 try again (a peer was lost),
            76 superseded by a newer process of the same device, 78 configuration)";

/// Returns the innermost subcommand on the command line.
const CLI::App& deepest(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : deepest(*chosen.front());
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  return names;
}

std::string path_of(const CLI::App& app) {
  return app.get_parent() == nullptr ? "rivulet" : path_of(*app.get_parent()) + " " + app.get_name();
}

std::string help_of(const CLI::App& app) {
  auto text = app.help(app.get_parent() == nullptr ? "" : path_of(*app.get_parent()));
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

bool takes_config(const CLI::App& app) {
  return app.get_option_no_throw("--config") != nullptr;
}

/// Suggests a likely meaning of the first unrecognized argument.
std::string suggestion_for(const CLI::App& app, const std::string& word) {
  const bool flag = word.starts_with("-");
  const auto name = word.substr(0, word.find('='));
  if (!flag && takes_config(app) && (word.ends_with(".toml") || std::filesystem::is_regular_file(word)))
    return fmt::format(" - did you mean '--config {}'?", word);
  const auto meant = nearest(name, flag ? flags_of(app) : commands_of(app));
  return meant.empty() ? "" : fmt::format(" - did you mean '{}'?", meant);
}

ExitCode wrong_usage(Terminal& terminal, const CLI::App& app, const std::string& message) {
  terminal.err << "error: " << message << "\nSee '" << path_of(app) << " --help'.\n";
  return ExitCode::usage;
}

ExitCode explain(Terminal& terminal, const CLI::App& root, const CLI::ParseError& error) {
  const auto& app = deepest(root);
  const auto left = root.remaining(true);
  const bool takes_commands = !commands_of(app).empty();
  if (!left.empty()) {
    const auto& word = left.front();
    const char* what = word.starts_with("-") ? "flag" : (takes_commands ? "command" : "argument");
    return wrong_usage(terminal, app,
                       fmt::format("unknown {} '{}'{}", what, word, suggestion_for(app, word)));
  }
  if (takes_commands && app.get_subcommands().empty()) {
    terminal.err << help_of(app);
    return wrong_usage(terminal, app, fmt::format("'{}' needs a command", path_of(app)));
  }
  return wrong_usage(terminal, app, error.what());
}

std::vector<std::unique_ptr<Command>> make_commands(CLI::App& root) {
  std::vector<std::unique_ptr<Command>> commands;
  for (auto* make :
       {make_run_command, make_stop_command, make_status_command, make_top_command, make_demo_command,
        make_feed_command, make_broker_command, make_peek_command, make_simulate_command, make_config_command,
        make_validate_command, make_checkpoint_command, make_ledger_command, make_decisions_command,
        make_evaluate_command, make_model_command, make_doctor_command, make_version_command}) {
    commands.push_back(make(root));
  }
  return commands;
}

void shape_help(CLI::App& app) {
  app.get_formatter()->column_width(34);
  for (auto* sub : app.get_subcommands([](CLI::App*) { return true; })) shape_help(*sub);
}

}  // namespace

ExitCode run_command_line(const std::vector<std::string>& arguments, Terminal& terminal) {
  CLI::App root(
      "Rivulet trains one model on many small streams: each device consumes its own Kafka partitions and\n"
      "synchronizes its parameters with its peers.",
      "rivulet");
  root.set_version_flag("--version", "rivulet " RIVULET_VERSION " (" RIVULET_REVISION ")");
  root.require_subcommand(1);
  root.footer(root_footer);
  const auto commands = make_commands(root);
  shape_help(root);
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // CLI11 expects reverse order
  try {
    root.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    terminal.out << help_of(deepest(root));
    return ExitCode::ok;
  } catch (const CLI::CallForVersion& version) {
    terminal.out << version.what() << '\n';
    return ExitCode::ok;
  } catch (const CLI::ParseError& error) {
    return explain(terminal, root, error);
  }
  const auto chosen =
      std::find_if(commands.begin(), commands.end(), [](const auto& c) { return c->chosen(); });
  const auto exit = (*chosen)->execute(terminal);
  terminal.out.flush();
  return exit;
}

ExitCode report_error(Terminal& terminal, const Error& error) {
  terminal.err << "error: " << error.message << '\n';
  return exit_code_for(error.code);
}

std::ostream& Terminal::out_screen() const {
  return out_output != nullptr ? out_output->screen() : out;
}

std::ostream& Terminal::err_screen() const {
  return err_output != nullptr ? err_output->screen() : err;
}

Terminal process_terminal(Output& out, Output& err, const char* const* environment) {
  Terminal terminal{out.text(), err.text()};
  terminal.out_output = &out;
  terminal.err_output = &err;
  std::string locale;
  for (auto entry = environment; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    const auto name = text.substr(0, equals);
    const auto value = equals == std::string::npos ? "" : text.substr(equals + 1);
    if (name.starts_with("RIVULET_")) terminal.environment[name] = value;
    if (name == "NO_COLOR" && !value.empty()) terminal.environment[name] = value;
    if (name == "LC_ALL" || (name == "LC_CTYPE" && locale.empty()) || (name == "LANG" && locale.empty())) {
      locale = value;
    }
  }
  winsize size{};
  terminal.interactive = ::isatty(STDOUT_FILENO) == 1;
  terminal.colour = terminal.interactive && terminal.environment.erase("NO_COLOR") == 0;
  terminal.unicode = locale.find("UTF-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  if (terminal.interactive && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    terminal.width = size.ws_col;
  }
  return terminal;
}

}  // namespace rivulet::runtime::cli
