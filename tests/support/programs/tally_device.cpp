// `tally_device CONFIG [KEY=VALUE ...]`: what `rivulet run` does, but the gather can be watched and the model
// `linear` is the test-only one that counts rows. Under that name the real binary reads what this one leaves.
#include <iostream>
#include <string>

#include "core/check.h"
#include "devices/trainer.h"
#include "runtime/signals.h"
#include "runtime/wiring/production.h"
#include "tests/support/parts/parts.h"
#include "tests/support/watched_gather.h"

using namespace rivulet;

namespace {

devices::ModelEntry tally_as_linear() {
  for (const auto* entry : devices::part_models())
    if (entry->name == "tally") return {"linear", entry->help, entry->make};
  RIVULET_CHECK(false, "there is no model tally");
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const devices::ModelEntry tally = tally_as_linear();
  testing::PartsCatalog parts;
  parts.replace(testing::watched_gather);
  parts.replace(tally);
  runtime::ConfigInput input;
  input.file = argv[1];
  input.sets.assign(argv + 2, argv + argc);
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
