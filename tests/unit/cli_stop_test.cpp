// Which devices `rivulet stop` waits for.
#include <doctest/doctest.h>

#include "runtime/cli/stop_job.h"
#include "tests/support/fold_script.h"

using namespace rivulet;
using namespace rivulet::runtime::cli;
using Script = rivulet::testing::FoldScript;

namespace {

std::string awaited(const Script& script) {
  std::string ids;
  for (const auto& device : devices_to_stop(script.fold)) ids += device.id + (device.lost ? "? " : " ");
  return ids;
}

}  // namespace

TEST_CASE(
    "Stop: members, starting and joining devices are waited for; one that the group went on without is not") {
  Script s;
  std::map<std::string, std::int64_t> of;
  for (const auto* id : {"a", "b", "c"}) of[id] = s.hello(id, {1, 4, 4});
  CHECK(awaited(s) == "c ");
  for (const auto* id : {"a", "b", "c"}) s.ready(id, of[id]);
  s.close("a", of["a"]);
  CHECK(awaited(s) == "a b c ");
  for (const auto* id : {"a", "b"}) s.ready(id, of[id], 2);  // c has died
  s.close("a", of["a"], 2);
  REQUIRE(s.fold.view.members.size() == 2);
  CHECK(awaited(s) == "a b ");
  of["d"] = s.hello("d", {1, 4, 4});
  CHECK(awaited(s) == "a b d ");
  s.ready("d", of["d"], 3);
  CHECK(awaited(s) == "a b d ");
  s.time_ms = 1000;
  s.hello("e", {1, 4, 4});
  CHECK(awaited(s) == "a b d e ");
}
