// One of four real streams falls silent, without effect on the others.
#include <doctest/doctest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "tests/support/device_group.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

constexpr int devices = 4;
constexpr int silent = 1;
constexpr int fed = 40;  // rows/s of each stream: what even a slow machine computes

using Rows = std::array<double, devices>;

Rows trained_by(const DeviceGroup& group) {
  Rows rows{};
  for (int i = 0; i < devices; ++i)
    rows[static_cast<std::size_t>(i)] = group.status(i)["rows_trained"].get<double>();
  return rows;
}

/// Rows/s of every device over `span`. Rows count at synchronizations, many at once: the rate is that from
/// the first of these to the last.
Rows speed(const DeviceGroup& group, Duration span) {
  struct Seen {
    double rows = 0;
    TimePoint at{};
  };
  const RealClock clock;
  std::array<Seen, devices> first, last;
  const TimePoint until = clock.now() + span;
  for (Rows before = trained_by(group); clock.now() < until; std::this_thread::sleep_for(50ms)) {
    const Rows rows = trained_by(group);
    for (std::size_t i = 0; i < devices; ++i) {
      if (rows[i] == before[i]) continue;
      last[i] = {rows[i], clock.now()};
      if (first[i].at == TimePoint{}) first[i] = last[i];
    }
    before = rows;
  }
  Rows speeds{};
  for (std::size_t i = 0; i < devices; ++i)
    if (last[i].at > first[i].at)
      speeds[i] = (last[i].rows - first[i].rows) / to_seconds(last[i].at - first[i].at);
  return speeds;
}

/// Waits until the silent device's stream has delivered no row for `span`.
bool silent_for(const DeviceGroup& group, Duration span) {
  const RealClock clock;
  auto since = clock.now();
  std::int64_t last = -1;
  return wait_until(
      [&] {
        const auto rows = group.status(silent)["rows_consumed"].get<std::int64_t>();
        if (rows != last) since = clock.now();
        last = rows;
        return clock.now() - since >= span;
      },
      40s);
}

/// Value of an unlabelled series of a scrape; -1 if missing.
double series(const std::string& page, const std::string& name) {
  const auto at = page.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::stod(page.substr(at + name.size() + 2));
}

/// A counter may change between requests, but lies between the values on the status page before and after.
void check_metrics(const DeviceGroup& group, int device) {
  const auto before = group.status(device);
  const std::string page = group.metrics(device);
  const auto after = group.status(device);
  const std::vector<std::pair<std::string, std::string>> same{
      {"rivulet_rows_consumed_total", "rows_consumed"}, {"rivulet_rows_trained_total", "rows_trained"}};
  for (const auto& [metric, key] : same) {
    CAPTURE(metric);
    CHECK(series(page, metric) > 0);
    CHECK(series(page, metric) >= before[key].get<double>());
    CHECK(series(page, metric) <= after[key].get<double>());
  }
}

}  // namespace

TEST_CASE("Silence: from 3 s after one of four streams fell silent the others are as fast as before") {
  DeviceGroupOptions options;
  options.devices = devices;
  options.arguments = {"--set", "model.name=lenet5"};
  DeviceGroup group(options);
  group.start_all();
  REQUIRE_MESSAGE(group.formed(60s), group.story());
  group.feed(fed, {"--second-rates", "40,0,40,40", "--change-at", "16s"});
  REQUIRE_MESSAGE(group.trained(4, 60s), group.story());
  for (int i = 0; i < devices; ++i) check_metrics(group, i);
  const Rows before = speed(group, 6s);
  REQUIRE(silent_for(group, 3s));
  const Rows after = speed(group, 8s);
  for (std::size_t i = 0; i < devices; ++i) {
    CAPTURE(i);
    CAPTURE(before[i]);
    CAPTURE(after[i]);
    CHECK(before[i] > 0.5 * fed);  // otherwise there was nothing to lose
    if (i == silent) {
      CHECK(after[i] == 0);
    } else {
      CHECK(after[i] >= 0.95 * before[i]);
      CHECK(after[i] >= 0.93 * fed);
    }
  }
}
