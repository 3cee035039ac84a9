#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "runtime/cli/command.h"
#include "runtime/cli/output.h"
#include "runtime/process/exit_code.h"

extern char** environ;

namespace {

/// Disables core dumps: they would contain passwords and rows, which many commands read.
void leave_no_core() {
  const rlimit none{0, 0};
  static_cast<void>(setrlimit(RLIMIT_CORE, &none));  // lowering is always allowed
}

}  // namespace

int main(int argc, char** argv) {
  using namespace rivulet::runtime;
  leave_no_core();
  cli::Output out(STDOUT_FILENO);
  cli::Output err(STDERR_FILENO, true);
  auto terminal = cli::process_terminal(out, err, environ);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto exit = cli::run_command_line(arguments, terminal);
  // A reader that closes the pipe, such as `head`, is not an error. Other failures, such as a full disk, are
  // reported.
  if (out.flush() || out.reader_is_gone()) return static_cast<int>(exit);
  err.text() << "error: cannot write to standard output\n";
  return static_cast<int>(ExitCode::failure);
}
