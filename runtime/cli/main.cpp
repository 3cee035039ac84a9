#include <sys/resource.h>

#include <iostream>
#include <string>
#include <vector>

#include "runtime/cli/command.h"
#include "runtime/exit_code.h"

extern char** environ;

namespace {

/// A picture of this process's memory would hold passwords and rows: many commands read both.
void leave_no_core() {
  const rlimit none{0, 0};
  static_cast<void>(setrlimit(RLIMIT_CORE, &none));  // lowering it is always allowed
}

}  // namespace

int main(int argc, char** argv) {
  leave_no_core();
  auto terminal = rivulet::runtime::cli::process_terminal(std::cout, std::cerr, environ);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto exit = rivulet::runtime::cli::run_command_line(arguments, terminal);
  if (!std::cout.flush()) {  // a full disk behind a redirection
    std::cerr << "error: cannot write to standard output\n";
    return static_cast<int>(rivulet::runtime::ExitCode::failure);
  }
  return static_cast<int>(exit);
}
