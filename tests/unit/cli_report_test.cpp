#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/cli/report.h"

using namespace rivulet::runtime;
using namespace rivulet::runtime::cli;

namespace {

Summary summary_of(const std::string& id, const std::string& digest) {
  Summary summary;
  summary.rounds = 350;
  summary.accuracy = 0.95;
  summary.rows_per_s = 1490;
  summary.time_to_accuracy_s = {{"0.90", 6.1}, {"0.95", 14.0}};
  summary.digests_compared = 1400;
  DeviceSummary device;
  device.id = id;
  device.rows_trained = 12345;
  device.rows_dropped = {{"bad_label", 3}};
  device.digest = digest;
  summary.devices = {device};
  return summary;
}

}  // namespace

TEST_CASE("Report: the summaries of the devices become one of the group") {
  const auto all = merge_summaries({summary_of("device-1", "aa"), summary_of("device-2", "aa")});
  CHECK(all.rounds == 350);
  CHECK(all.rows_per_s == 1490);
  CHECK(all.digests_compared == 1400);  // both counted the same ones
  CHECK(all.parameters_equal);
  CHECK(all.time_to_accuracy_s.at("0.90") == 6.1);
  REQUIRE(all.devices.size() == 2);
  CHECK(all.devices[1].id == "device-2");
}

TEST_CASE("Report: how fast the group was, say those who were there all the time") {
  auto again = summary_of("device-2", "");
  again.rounds = 100;
  again.rows_per_s = 2100;  // with the rows that waited, in less time
  CHECK(merge_summaries({again, summary_of("device-1", "aa")}).rows_per_s == 1490);
  CHECK(merge_summaries({summary_of("device-1", "aa"), again}).rows_per_s == 1490);
}

TEST_CASE("Report: one other digest, or one device that saw a difference, and the parameters are not equal") {
  CHECK_FALSE(merge_summaries({summary_of("a", "aa"), summary_of("b", "ab")}).parameters_equal);
  auto unequal = summary_of("b", "aa");
  unequal.parameters_equal = false;
  CHECK_FALSE(merge_summaries({summary_of("a", "aa"), unequal}).parameters_equal);
  CHECK(merge_summaries({}).devices.empty());
  // Stopped a round earlier: parameters may differ.
  auto earlier = summary_of("b", "ab");
  earlier.rounds = 349;
  CHECK(merge_summaries({summary_of("a", "aa"), earlier}).parameters_equal);
  CHECK(merge_summaries({summary_of("a", "aa"), summary_of("b", "")}).parameters_equal);  // no digest
}

TEST_CASE("Report: people read rows, drops by reason, equality and times") {
  std::ostringstream out;
  print_summary(merge_summaries({summary_of("device-1", "aa")}), out);
  const auto text = out.str();
  for (const char* part :
       {"12 345", "device-1 dropped 3 rows: bad_label", "350 rounds", "identical parameters (1 400",
        "95.00 %", "reached 90 % after 6.1 s, 95 % after 14 s"}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(text.find("restarted") == std::string::npos);
  std::ostringstream again;
  auto restarted = merge_summaries({summary_of("device-1", "aa"), summary_of("device-2", "aa")});
  restarted.devices[0].restarts = 0;
  restarted.devices[1].restarts = 3;
  print_summary(restarted, again);
  CHECK(again.str().find("  device-2 was restarted 3 times; its figures count from the last restart\n") !=
        std::string::npos);
  CHECK(again.str().find("device-1 was restarted") == std::string::npos);
  std::ostringstream rare;
  auto scored = summary_of("a", "aa");
  scored.devices[0].own = {.rows = 1000,
                           .accuracy = 0.99,
                           .classes = {{990, 984, 982}, {10, 16, 8}},
                           .names = {"ok", "fault"},
                           .largest_share = 0.99,
                           .largest_class = "ok"};
  print_summary(scored, rare);
  CHECK(
      rare.str().find("  last 1 000 rows, before training: accuracy 99.0 %; baseline (always \"ok\") 99.0 %\n"
                      "    fault: recall 80.0 %, precision 50.0 %, 10 rows\n"
                      "    ok: recall 99.2 %, precision 99.8 %, 990 rows\n") != std::string::npos);
  std::ostringstream numbers;
  scored.devices[0].own = {.rows = 500, .mean_absolute_error = 3.25, .r2 = 0.875};
  print_summary(scored, numbers);
  CHECK(numbers.str().find("  last 500 rows, before training: mean absolute error 3.25, R2 0.875\n") !=
        std::string::npos);
  std::ostringstream broken;
  auto unequal = summary_of("a", "aa");
  unequal.parameters_equal = false;
  print_summary(unequal, broken);
  CHECK(broken.str().find("PARAMETERS DIFFER") != std::string::npos);
}
