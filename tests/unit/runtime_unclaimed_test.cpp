#include <doctest/doctest.h>

#include "runtime/status/health/unclaimed.h"
#include "runtime/status/page/node_report.h"
#include "runtime/status/page/status_page.h"
#include "runtime/status/status_json.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using rivulet::testing::contains;

TEST_CASE("Unclaimed: what was trained and what the topics have, less what members claim, each once") {
  using Names = std::vector<std::string>;
  const std::vector<TopicStatus> topics{{.name = "pumps", .partitions = 3},
                                        {.name = "kilns", .partitions = -1},
                                        {.name = "control", .control = true, .partitions = 1}};
  const Names trained{"pumps:10", "pumps:2", "kilns:0"};
  CHECK(unclaimed_partitions({.known = true, .claimed = {"pumps:0", "kilns:0"}, .trained = trained},
                             topics) == Names{"pumps:10", "pumps:2", "pumps:1"});
  CHECK(unclaimed_partitions({.known = true, .claimed = {"pumps:0"}, .trained = {}}, {}).empty());
  CHECK(unclaimed_partitions(
            {.known = true, .claimed = {"pumps:2", "pumps:1", "pumps:0"}, .trained = {"pumps:1"}}, topics)
            .empty());
}

TEST_CASE("Unclaimed: status page and page for browsers say which, and nothing where there are none") {
  NodeStatus status;
  const auto json = [&] { return status_json(status, {"b", "j", "m", {}}); };
  CHECK_FALSE(contains(status_page(json(), "{}", "n"), "impaired"));
  status.set_unclaimed({"pumps:2", "<b>:0"});
  status.set_health(
      {.judged = true,
       .findings = {{"partitions_unclaimed", Grade::impaired, "nobody claims pumps:2, <b>:0"}}});
  const auto report = read_node_report(json(), "{}");
  REQUIRE(report);
  CHECK(report->unclaimed == std::vector<std::string>{"pumps:2", "<b>:0"});
  CHECK(report->impaired == std::vector<std::string>{"nobody claims pumps:2, <b>:0"});
  CHECK(contains(status_page(json(), "{}", "n"),
                 "<p class=\"state impaired\">nobody claims pumps:2, &lt;b&gt;:0</p>"));
}
