// One wiring: production and simulation build the same objects, except those that a wiring chooses
// (docs/ARCHITECTURE.md, "What the simulation replaces").
#include <doctest/doctest.h>

#include <set>

#include "runtime/wiring/production.h"
#include "tests/support/group_support.h"
#include "tests/support/temp_dir.h"

using namespace rivulet;
using namespace rivulet::testing;

TEST_CASE(
    "Wirings: the same roles, and the same types but for clock, wake, source, device, log, metrics and "
    "decisions") {
  const TempDir folder;
  auto loaded = linear_job(2);
  loaded.config.device.data_dir = folder.path();
  loaded.config.source.claims = {{"lines", 0}};
  loaded.config.source.kafka_properties = {{"bootstrap.servers", "127.0.0.1:1"}};
  loaded.config.log.level = "error";
  const auto real = runtime::production_object_types(loaded);
  const auto group = build_group(loaded, {});
  const auto simulated = group->node(0).object_types();
  REQUIRE(real.size() == simulated.size());
  REQUIRE(real.size() >= 16);
  const std::set<std::string> outside{"clock", "wake", "source", "device", "log", "metrics", "decisions"};
  for (std::size_t i = 0; i < real.size(); ++i) {
    INFO(real[i].first, ": ", real[i].second, " and ", simulated[i].second);
    CHECK(real[i].first == simulated[i].first);
    CHECK((real[i].second == simulated[i].second) == !outside.contains(real[i].first));
  }
}
