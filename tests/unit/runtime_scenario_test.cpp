// Parts of a simulated scenario: traces by name, recorded traces, scripts of faults, tables of results.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/clock.h"
#include "runtime/wiring/simulation_faults.h"
#include "runtime/wiring/simulation_limits.h"
#include "runtime/wiring/simulation_source.h"
#include "runtime/wiring/simulation_traces.h"
#include "tests/support/assigned.h"
#include "tests/support/temp_dir.h"

using namespace rivulet;
using namespace rivulet::runtime;
using rivulet::testing::TempDir;

namespace {

std::vector<double> first_rates(const std::string& name, std::size_t devices, std::uint64_t seed = 1) {
  std::vector<double> rates;
  for (const RateTrace& trace : make_traces(name, devices, seed, 60).value()) {
    REQUIRE(trace.size() == 1);
    CHECK(trace.front().first == 0);
    rates.push_back(trace.front().second);
  }
  return rates;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

double deviation_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (const double v : values) sum += (v - mean) * (v - mean);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

/// Rows of a trace over its first `seconds`.
double rows_of(const RateTrace& trace, double seconds) {
  double rows = 0;
  for (double at = 0; at < seconds; at = next_change(trace, at))
    rows += rate_at(trace, at) * (std::min(seconds, next_change(trace, at)) - at);
  return rows;
}

std::string refusal(const Result<std::vector<Fault>>& read) {
  REQUIRE_FALSE(read);
  CHECK(read.error().code == ErrorCode::usage);
  return read.error().message;
}

std::string fault_refusal(const std::string& script) {
  return refusal(parse_faults(script, "day.txt", 3));
}

std::string trace_refusal(const std::string& text) {
  const auto read = parse_recorded_trace(text, "day.csv");
  REQUIRE_FALSE(read);
  return read.error().message;
}

}  // namespace

TEST_CASE("Scenario: the published stream sets have their means, deviations and shapes") {
  struct Expected {
    const char* name;
    double mean;
    double deviation;
  };
  for (const auto& [name, mean, deviation] : {Expected{"S2", 300, 112}, {"S1'", 64, 24}, {"S2'", 256, 28}}) {
    CAPTURE(name);
    const auto rates = first_rates(name, 4000);
    CHECK(mean_of(rates) == doctest::Approx(mean).epsilon(0.03));
    CHECK(deviation_of(rates) == doctest::Approx(deviation).epsilon(0.06));
    CHECK(*std::min_element(rates.begin(), rates.end()) >= 1);
  }
  // S1 is cut off at zero: its mean is a little higher.
  const auto s1 = first_rates("S1", 4000);
  CHECK(mean_of(s1) == doctest::Approx(38).epsilon(0.05));
  CHECK(*std::min_element(s1.begin(), s1.end()) == 1);
  const auto s2 = first_rates("S2", 4000);  // uniform: sharp ends
  CHECK(*std::min_element(s2.begin(), s2.end()) > 105);
  CHECK(*std::max_element(s2.begin(), s2.end()) < 495);
  const auto normal = first_rates("S2'", 4000);  // normal: one in twenty is two deviations away
  CHECK(std::count_if(normal.begin(), normal.end(), [](double r) { return std::abs(r - 256) > 56; }) > 100);
}

TEST_CASE("Scenario: a device's trace depends on seed and device, not on the size of the group") {
  const auto few = first_rates("S1'", 4);
  const auto many = first_rates("S1'", 16);
  CHECK(std::equal(few.begin(), few.end(), many.begin()));
  CHECK(few[0] != few[1]);
  CHECK(first_rates("S1'", 4, 2) != few);
}

TEST_CASE("Scenario: diurnal and bursty streams keep their mean and their extremes") {
  const auto days = make_traces("diurnal:50,100", 3, 1, 100).value();
  for (const RateTrace& day : days) {
    CHECK(rows_of(day, 100) == doctest::Approx(5000).epsilon(0.001));
    const auto [low, high] =
        std::minmax_element(day.begin(), day.end(), [](auto& a, auto& b) { return a.second < b.second; });
    CHECK(low->second == doctest::Approx(10).epsilon(0.02));
    CHECK(high->second == doctest::Approx(90).epsilon(0.02));
  }
  CHECK(days[0] != days[1]);
  const auto bursts = make_traces("bursty:50,2", 40, 1, 500).value();
  double rows = 0;
  for (const RateTrace& trace : bursts) {
    rows += rows_of(trace, 500);
    for (const auto& [from, rate] : trace) CHECK((rate == 0 || rate == 250));
  }
  CHECK(rows / 40 == doctest::Approx(25'000).epsilon(0.1));
}

TEST_CASE("Scenario: recorded traces are read, and what is wrong is named with file and line") {
  CHECK(parse_recorded_trace("second,rate\n# night\n0,5\n\n10, 7.5\r\n", "day.csv").value() ==
        RateTrace{{0, 5}, {10, 7.5}});
  CHECK(trace_refusal("0,5\n3;6\n").rfind("day.csv:2: '3;6'", 0) == 0);
  CHECK(trace_refusal("0,5\n0,6\n").rfind("day.csv:2: ", 0) == 0);
  CHECK(trace_refusal("0,-5\n").rfind("day.csv:1: ", 0) == 0);
  CHECK(trace_refusal("0,nan\n").rfind("day.csv:1: ", 0) == 0);
  CHECK(trace_refusal("# nothing\n") == "day.csv: contains no line SECOND,RATE");
  TempDir folder;
  folder.write("a.csv", "0,5\n");
  folder.write("b.csv", "0,6\n1,0\n");
  const std::string path = folder.path().string();
  const auto traces = make_traces("recorded:" + path + "/a.csv," + path + "/b.csv", 3, 1, 60).value();
  CHECK(traces == std::vector<RateTrace>{{{0, 5}}, {{0, 6}, {1, 0}}, {{0, 5}}});
  const auto lost = make_traces("recorded:" + path + "/c.csv", 3, 1, 60);
  REQUIRE_FALSE(lost);
  CHECK(lost.error().message.find("c.csv") != std::string::npos);
}

TEST_CASE("Scenario: names of traces that mean nothing are refused") {
  for (const char* name :
       {"S3", "S1'x", "constant", "constant:", "constant:0", "constant:-1", "constant:1,2", "diurnal:x",
        "diurnal:5,1e-300", "bursty:5,1e-300", "bursty:5,0", "recorded:", ""}) {
    CAPTURE(name);
    const auto made = make_traces(name, 2, 1, 60);
    REQUIRE_FALSE(made);
    CHECK(made.error().code == ErrorCode::usage);
  }
}

TEST_CASE("Scenario: a script of faults is read by number, letter and id") {
  const auto faults = parse_faults(
                          "# a day\nat 1.5 kill b\n\nat 2 start device-02  # again\n"
                          "at 2 link 1 1mbit 20ms\nat 3 stop c\nat 4 link a free\n",
                          "day.txt", 3)
                          .value();
  REQUIRE(faults.size() == 5);
  CHECK(faults[0].kind == Fault::Kind::kill);
  CHECK(faults[0].at_s == 1.5);
  CHECK(faults[0].device == 1);
  CHECK(faults[1].kind == Fault::Kind::start);
  CHECK(faults[1].device == 1);
  CHECK(faults[2].device == 0);
  CHECK(faults[2].link.bytes_per_second == 125'000);
  CHECK(faults[2].link.latency == std::chrono::milliseconds(20));
  CHECK(faults[3].kind == Fault::Kind::stop);
  CHECK(faults[4].link.bytes_per_second == 0);
}

TEST_CASE("Scenario: a time or a link that no simulation can play is named with its line") {
  const auto said = [](const std::string& script) {
    SimulateOptions options;
    options.faults = parse_faults(script, "day.txt", 3).value();
    const auto fits = check_scenario(options, 3);
    REQUIRE_FALSE(fits);
    return fits.error().message;
  };
  CHECK(said("at 1 kill b\nat 1e300 start b\n").rfind("day.txt:2: ", 0) == 0);
  CHECK(said("\nat 1 link a 1e-300kbit\n").rfind("day.txt:2: ", 0) == 0);
}

TEST_CASE("Scenario: what is wrong in a script is named with its line and word") {
  const auto said = [](const std::string& script, const std::string& where, const std::string& what) {
    const std::string message = fault_refusal(script);
    CAPTURE(message);
    CHECK(message.rfind(where, 0) == 0);
    CHECK(message.find(what) != std::string::npos);
  };
  said("at 1 kill b\nat 2 explode c\n", "day.txt:2: ", "'explode'");
  said("at soon kill b\n", "day.txt:1: ", "'soon'");
  said("at 1 kill d\n", "day.txt:1: ", "'d'");
  said("at 1 kill device-00\n", "day.txt:1: ", "'device-00'");
  said("at 1 kill device-b\n", "day.txt:1: ", "'device-b'");
  said("at 1 kill 1.0\n", "day.txt:1: ", "'1.0'");
  said("at 1 kill b\nat 2 stop b\n", "day.txt:2: ", "killed and not restarted");
  said("at 1 kill edge\n", "day.txt:1: ", "'edge'");
  said("at 1 kill\n", "day.txt:1: ", "expected: at SECOND");
  said("at 1 kill b now\n", "day.txt:1: ", "expected: at SECOND");
  said("at 1 link b\n", "day.txt:1: ", "expected: at SECOND");
  said("at 1 link b 1mb\n", "day.txt:1: ", "'1mb'");
  said("at 1 link b 1mbit far\n", "day.txt:1: ", "far");
  said("\nat 1 start b\n", "day.txt:2: ", "only a killed device");
  said("at 1 kill b\nat 2 kill b\n", "day.txt:2: ", "killed and not restarted");
  said("at 1 stop b\nat 2 kill b\n", "day.txt:2: ", "has been stopped and cannot return");
  said("at 1 stop b\nat 2 stop b\n", "day.txt:2: ", "has been stopped and cannot return");
  said("at 2 kill b\nat 1 start b\n", "day.txt:2: ", "chronological order");
}

TEST_CASE("Scenario: numbers that no clock can count and parts that no device has are refused by name") {
  const auto said = [](const auto& change) {
    SimulateOptions options;
    options.rates = {{{0, 100}}, {{0, 50}}};
    options.stop_after.rounds = 5;
    change(options);
    const auto fits = check_scenario(options, 2);
    if (!fits) CHECK(fits.error().code == ErrorCode::usage);
    return fits ? std::string() : fits.error().message;
  };
  const auto names = [&](const std::string& what, const auto& change) {
    const std::string message = said(change);
    CAPTURE(message);
    CHECK(message.find(what) == 0);
  };
  CHECK(said([](auto&) {}).empty());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double rate : {1e300, -1.0, nan})
    names(fmt::format("{:g} rows/s", rate), [&](auto& o) { o.rates[1][0].second = rate; });
  names("5 rows/s from second 1e+300", [](auto& o) { o.rates[1].emplace_back(1e300, 5); });
  names("every stream is silent", [](auto& o) { o.rates = {{{0, 0}}}; });
  names("--rates names 3", [](auto& o) { o.rates.resize(3); });
  names("--profile names 3", [](auto& o) { o.profiles.resize(3); });
  names("--own-link names 3", [](auto& o) { o.own_links.resize(3); });
  names("--stop-after", [](auto& o) { o.stop_after.seconds = 1e300; });
  names("--profile-fixed", [](auto& o) { o.profile.rows_per_second = 1e-300; });
  names("--latency", [](auto& o) { o.link.latency = Duration::max(); });
  names("--latency", [](auto& o) { o.link.bytes_per_second = 1e-300; });
  names("--profile", [&](auto& o) { o.profiles = {{Duration(1), nan}}; });
  names("--own-link", [](auto& o) { o.own_links = {{Duration(1), 1e-300}}; });
  names("--faults", [](auto& o) { o.faults = {{.at_s = 1e300}}; });
}

TEST_CASE("Scenario: a device that is dealt some records plays those, again and again, and no other") {
  TempDir folder;
  folder.write("rows.csv", "a,b\n1,2\n3,4\n5,6\n");
  const auto data = stream::open_dataset((folder.path() / "rows.csv").string(), stream::Split::train).value();
  VirtualClock clock;
  const auto source =
      testing::reading(make_trace_source(*data, {0, 2}, {0, 0}, {{0, 10}}, 1, clock), {{0, 0}});
  clock.advance_to(TimePoint(from_seconds(2.05)));
  const auto rows = source->poll(100, Duration(0)).value();
  REQUIRE(rows.size() == 20);
  std::map<std::string, int> seen;
  for (const Record& row : rows)
    ++seen[std::string(reinterpret_cast<const char*>(row.value.data()), row.value.size())];
  CHECK(seen == std::map<std::string, int>{{"1,2", 10}, {"5,6", 10}});
}

TEST_CASE("Scenario: rows of a data set come as many as the trace says, also where its rate changes") {
  TempDir folder;
  folder.write("rows.csv", "a,b\n1,2\n3,4\n");
  const auto data = stream::open_dataset((folder.path() / "rows.csv").string(), stream::Split::train).value();
  // A row of the first rate would be due after a thousand seconds, one of the third after fifty.
  const RateTrace trace{{0, 0.001}, {1, 100}, {3, 0.02}, {4, 0}, {5, 10}};
  VirtualClock clock;
  const auto source = testing::reading(make_trace_source(*data, {}, {0, 0}, trace, 1, clock), {{0, 0}});
  for (const double second : {0.5, 1.5, 3.0, 3.9, 5.0, 10.0}) {
    CAPTURE(second);
    clock.advance_to(TimePoint(from_seconds(second)));
    REQUIRE(source->poll(1, Duration(0)));
    CHECK(std::abs(static_cast<double>(source->partitions()[0].high_watermark) - rows_of(trace, second)) <=
          1);
  }
}
