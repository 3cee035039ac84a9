// `tally_device CONFIG [KEY=VALUE ...]`: what `rivulet run` does, with the test-only parts in its catalog.
#include <cstdlib>
#include <iostream>
#include <string>

#include "devices/trainer.h"
#include "runtime/signals.h"
#include "runtime/wiring/production.h"
#include "tests/support/parts/parts.h"
#include "tests/support/watched_gather.h"

using namespace rivulet;

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  testing::PartsCatalog parts;
  parts.replace(testing::watched_gather);
  runtime::ConfigInput input;
  input.file = argv[1];
  input.sets.assign(argv + 2, argv + argc);
  input.catalog = runtime::builtin_catalog_names();
  input.catalog->models.emplace_back("tally");
  const auto loaded = runtime::load_config(input);
  for (const auto& problem : loaded.problems) std::cerr << problem.text() << '\n';
  if (!loaded.usable()) return 78;
  devices::prepare_process(1);
  runtime::StopRequest stop{0};
  const runtime::SignalHandlers handlers(stop);
  const auto result = runtime::run_device_with(loaded, {}, parts.catalog(), stop);
  if (result.exit != runtime::ExitCode::ok) std::cerr << "error: " << result.message << '\n';
  std::cout << to_json(result.summary) << '\n';
  return static_cast<int>(result.exit);
}
