#include "tests/support/device_program.h"

#include <iostream>

#include "runtime/process/signals.h"
#include "runtime/wiring/production.h"

namespace rivulet::testing {

int run_device_program(std::span<char*> arguments, const runtime::RunOptions& options,
                       const runtime::Catalog& catalog) {
  runtime::ConfigInput input;
  input.file = arguments.front();
  input.sets.assign(arguments.begin() + 1, arguments.end());
  const auto loaded = runtime::load_config(input);
  for (const auto& problem : loaded.problems) std::cerr << problem.text() << '\n';
  if (!loaded.usable()) return 78;
  runtime::StopRequest stop{0};
  const runtime::SignalHandlers handlers(stop);
  const auto result = runtime::run_device_with(loaded, options, catalog, stop);
  if (result.exit != runtime::ExitCode::ok) std::cerr << "error: " << result.message << '\n';
  std::cout << to_json(result.summary) << '\n';
  return static_cast<int>(result.exit);
}

}  // namespace rivulet::testing
