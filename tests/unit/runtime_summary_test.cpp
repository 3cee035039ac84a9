#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/status/summary.h"

using namespace rivulet::runtime;
using Json = nlohmann::ordered_json;

namespace {

Summary example() {
  Summary s;
  s.rounds = 349;
  s.accuracy = 0.9731;
  s.rows_per_s = 1499.5;
  s.time_to_accuracy_s = {{"0.90", 4.5}, {"0.95", 11.25}};
  s.parameters_equal = false;
  s.digests_compared = 1396;
  DeviceSummary d;
  d.id = "device \"1\"\n";
  d.rows_consumed = 18'446'744'073'709'551'615ULL;  // without conversion to double
  d.rows_trained = 27'990;
  d.rows_waiting = 10;
  d.rows_dropped = {{"malformed", 3}, {"bad_label", 2}};
  d.stream_rate = 800.25;
  d.batch_mean = 80.2;
  d.compute_s = 1;
  d.wait_s = 2;
  d.sync_s = 3;
  d.cpu_s = 4;
  d.bytes_sent = 5;
  d.bytes_received = 6;
  d.record_bytes_trained = 40;
  d.max_rss_bytes = 7;
  d.first_step_s = 0.125;
  d.digest = "0123456789abcdef0123456789abcdef";
  d.own = {.rows = 1000,
           .loss = 0.5,
           .accuracy = 0.99,
           .classes = {{990, 984, 982}, {10, 16, 8}},
           .names = {"ok", "fault"},
           .largest_share = 0.99,
           .largest_class = "ok",
           .mean_absolute_error = 0.25,
           .r2 = 0.75};
  s.devices = {d, DeviceSummary{.id = "device-2"}};
  return s;
}

}  // namespace

TEST_CASE("Summary: the names are those that were promised, in one line") {
  const std::string line = to_json(example());
  CHECK(line.find('\n') == std::string::npos);
  const Json parsed = Json::parse(line);
  std::string names;
  for (const auto& [name, value] : parsed.items()) names += name + " ";
  CHECK(names ==
        "rounds accuracy rows_per_s time_to_accuracy_s parameters_equal digests_compared "
        "sync_bytes_sent record_bytes_trained edge_ratio devices ");
  CHECK(parsed["sync_bytes_sent"] == 5);
  CHECK(parsed["edge_ratio"] == 0.125);
  CHECK(Json::parse(to_json(Summary{}))["edge_ratio"].is_null());
  names.clear();
  for (const auto& [name, value] : parsed["devices"][0].items()) names += name + " ";
  CHECK(names ==
        "id rows_consumed rows_dropped rows_trained rows_waiting stream_rate compute_s wait_s sync_s "
        "record_bytes_trained bytes_sent bytes_received first_step_s batch_mean cpu_s max_rss_bytes digest "
        "own ");
  CHECK(parsed["time_to_accuracy_s"]["0.90"] == 4.5);
  CHECK(parsed["devices"][0]["rows_dropped"]["bad_label"] == 2);
}

TEST_CASE("Summary: what was written is read back, number by number") {
  const Summary s = example();
  const auto read = summary_from_json(to_json(s));
  REQUIRE(read);
  CHECK(to_json(*read) == to_json(s));
  CHECK(read->accuracy == s.accuracy);
  CHECK(read->parameters_equal == false);
  CHECK(read->time_to_accuracy_s == s.time_to_accuracy_s);
  REQUIRE(read->devices.size() == 2);
  CHECK(read->devices[0].id == s.devices[0].id);
  CHECK(read->devices[0].rows_consumed == s.devices[0].rows_consumed);
  CHECK(read->devices[0].rows_dropped == s.devices[0].rows_dropped);
  CHECK(read->devices[0].first_step_s == 0.125);
  CHECK_FALSE(read->devices[0].restarts);  // only a supervisor counts restarts
  Summary watched = example();
  watched.devices[0].restarts = 2;
  CHECK(Json::parse(to_json(watched))["devices"][0]["restarts"] == 2);
  CHECK(summary_from_json(to_json(watched))->devices[0].restarts == 2U);
}

TEST_CASE("Summary: an unknown accuracy is null, and so is a number that is none") {
  Summary s = example();
  s.accuracy.reset();
  s.rows_per_s = std::numeric_limits<double>::quiet_NaN();
  s.devices[0].stream_rate = std::numeric_limits<double>::infinity();
  const Json parsed = Json::parse(to_json(s));
  CHECK(parsed["accuracy"].is_null());
  CHECK(parsed["rows_per_s"].is_null());
  const auto read = summary_from_json(to_json(s));
  REQUIRE(read);
  CHECK(!read->accuracy);
  CHECK(std::isnan(read->rows_per_s));
}

TEST_CASE("Summary: any other line is not a summary") {
  CHECK(!summary_from_json(""));
  CHECK(!summary_from_json("ready"));
  CHECK(!summary_from_json("[]"));
  CHECK(!summary_from_json("{}"));
  const std::string line = to_json(example());
  for (std::size_t n = 0; n < line.size(); ++n) CHECK(!summary_from_json(line.substr(0, n)));
  const Json whole = Json::parse(line);
  for (const auto& [name, value] : whole.items()) {
    CAPTURE(name);
    Json less = whole;
    less.erase(name);
    CHECK(!summary_from_json(less.dump()));
    Json other = whole;
    other[name] = "text";
    CHECK(!summary_from_json(other.dump()));
  }
  for (const auto& [name, value] : whole["devices"][0].items()) {
    CAPTURE(name);
    Json less = whole;
    less["devices"][0].erase(name);
    CHECK(!summary_from_json(less.dump()));
  }
}

TEST_CASE("Summary: the last rows of all devices add up by class name, and by rows") {
  Summary s = example();
  DeviceSummary other = s.devices[0];
  other.own = {.rows = 3000,
               .loss = 0.1,
               .accuracy = 0.5,
               .classes = {{100, 50, 50}, {2900, 2950, 1450}},
               .names = {"fault", "odd"},
               .largest_share = 0.9,
               .largest_class = "odd"};
  s.devices = {s.devices[0], DeviceSummary{.id = "no rows"}, other};
  const OwnScores all = s.last_rows();
  CHECK(all.rows == 4000);
  CHECK(all.loss == doctest::Approx(0.2));
  CHECK(*all.accuracy == doctest::Approx((990.0 + 1500) / 4000));
  CHECK(all.names == std::vector<std::string>{"ok", "fault", "odd"});
  CHECK(all.classes[1] == ClassCounts{110, 66, 58});
  CHECK(all.largest_class == "odd");
  CHECK(*all.largest_share == doctest::Approx(2900.0 / 4000));
  CHECK_FALSE(all.r2);
}

TEST_CASE("Summary: a largest class that is not among those listed is not made up of those that are") {
  // 400 of 1000 rows are of listed classes, most of the others of one unlisted class.
  const OwnScores one{.rows = 1000,
                      .loss = 0.1,
                      .accuracy = 0.5,
                      .classes = {{300, 300, 300}, {100, 100, 100}},
                      .names = {"0", "1"},
                      .largest_share = 0.5,
                      .largest_class = "500"};
  OwnScores other = one;
  other.rows = 3000;
  other.largest_share = 0.7;
  const OwnScores same = together(one, other);
  CHECK(same.largest_class == "500");
  CHECK(*same.largest_share == doctest::Approx(0.65));
  other.largest_class = "600";
  CHECK_FALSE(together(one, other).largest_share);
  CHECK_FALSE(together(together(one, other), one).largest_share);
}
