#include <iostream>
#include <string>
#include <vector>

#include "runtime/cli/command.h"

extern char** environ;

int main(int argc, char** argv) {
  auto terminal = rivulet::runtime::cli::process_terminal(std::cout, std::cerr, environ);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return static_cast<int>(rivulet::runtime::cli::run_command_line(arguments, terminal));
}
