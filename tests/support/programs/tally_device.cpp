// `tally_device CONFIG [KEY=VALUE ...]`: as `rivulet run`, but gather reports its progress, and the model
// `linear` is the test-only one that counts rows. With this name the real binary can read its states.
#include <span>

#include "core/check.h"
#include "devices/trainer.h"
#include "tests/support/device_program.h"
#include "tests/support/kill_board.h"
#include "tests/support/parts/parts.h"
#include "tests/support/stepped_clock.h"
#include "tests/support/watched_gather.h"

using namespace rivulet;

namespace {

devices::ModelEntry tally_as_linear() {
  for (const auto* entry : devices::part_models())
    if (entry->name == "tally") return {"linear", entry->help, entry->make};
  RIVULET_CHECK(false, "no model tally");
  return {};
}

devices::OptimizerEntry tally_as_sgd() {
  for (const auto* entry : devices::part_optimizers())
    if (entry->name == "tally") return {"sgd", entry->help, entry->keys, entry->arrays, entry->step};
  RIVULET_CHECK(false, "no optimizer tally");
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const devices::ModelEntry tally = tally_as_linear();
  testing::PartsCatalog parts;
  parts.replace(testing::watched_gather);
  parts.replace(tally);
  const devices::OptimizerEntry counting = tally_as_sgd();
  parts.replace(counting);
  devices::prepare_process(1);
  const auto page = testing::KillBoard::of_this_process();
  testing::step_wall_clock(page->clock_step_ns);
  runtime::RunOptions options;
  options.cool_down = page->warm == 0;
  return testing::run_device_program(std::span(argv + 1, argv + argc), options, parts.catalog());
}
