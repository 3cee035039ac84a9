#include <doctest/doctest.h>

#include "runtime/state/unclaimed.h"
#include "runtime/status/page/node_report.h"
#include "runtime/status/page/status_page.h"
#include "runtime/status/status_json.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using rivulet::testing::contains;

TEST_CASE("Unclaimed: what the state knows and no member claims, in the state's order") {
  std::map<PartitionId, PartitionProgress> known;
  for (const PartitionId id : {PartitionId{0, 2}, PartitionId{1, 0}, PartitionId{0, 0}, PartitionId{0, 10}})
    known[id] = {};
  const std::vector<std::string> topics{"pumps", "kilns"};
  using Names = std::vector<std::string>;
  CHECK(unclaimed_partitions(known, {{"a", {"pumps:0"}}, {"b", {"pumps:10", "kilns:0"}}}, topics) ==
        Names{"pumps:2"});
  CHECK(unclaimed_partitions(known, {{"a", {"pumps:0", "pumps:2"}}, {"b", {"pumps:3"}}}, topics) ==
        Names{"pumps:10", "kilns:0"});
  CHECK(unclaimed_partitions(known, {{"a", {"kilns:0", "pumps:0", "pumps:10", "pumps:2"}}}, topics).empty());
  CHECK(unclaimed_partitions({}, {{"a", {"pumps:0"}}}, topics).empty());
}

TEST_CASE("Unclaimed: the page and its reader name the partitions, and say nothing where there are none") {
  NodeStatus status;
  const auto json = [&] { return status_json(status, {"b", "j", "m", {}}); };
  CHECK_FALSE(contains(status_page(json(), "{}", "n"), "unclaimed"));
  status.set_unclaimed({"pumps:2", "<b>:0"});
  const auto report = read_node_report(json(), "{}");
  REQUIRE(report);
  CHECK(report->unclaimed == std::vector<std::string>{"pumps:2", "<b>:0"});
  CHECK(contains(status_page(json(), "{}", "n"),
                 "<p id=\"unclaimed\" class=\"state\">no device of the group claims pumps:2, "
                 "&lt;b&gt;:0, which it has trained before: give it to one (source.partitions)</p>"));
  status.set_unclaimed({});
  CHECK(read_node_report(json(), "{}")->unclaimed.empty());
}
