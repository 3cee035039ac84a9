// The machine as metrics: once per second, without series of missing sensors.
#include "runtime/status/board_watch.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "runtime/status/metrics/prometheus_sink.h"
#include "tests/support/sensor_tree.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

struct Planted : TempDir {
  explicit Planted(const char* tree) { plant_sensors(*this, tree); }
};

struct Machine {
  explicit Machine(const char* tree) : root(tree) {}
  /// Reads the sensors `after` the last time, and returns a scrape.
  std::string look(Duration after) {
    clock.advance_by(after);
    watch.step();
    return sink->scrape();
  }
  Planted root;
  VirtualClock clock;
  std::unique_ptr<PrometheusSink> sink = make_prometheus_sink();
  BoardWatch watch{{clock, devices::Sensors(root.path()), *sink}};
};

double value_of(const std::string& text, const std::string& series) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(series + " ")) return std::stod(line.substr(series.size() + 1));
  return -1;
}

}  // namespace

TEST_CASE("BoardWatch: a Jetson's sensors, and its energy from volts and amperes") {
  Machine jetson("orin-jetpack6");
  std::string text = jetson.look(0s);
  CHECK(value_of(text, "rivulet_board_info{board=\"NVIDIA Jetson Orin Nano Developer Kit\"}") == 1);
  CHECK(value_of(text, "rivulet_temperature_celsius{zone=\"cpu-thermal\"}") == 48.531);
  CHECK_FALSE(contains(text, "cv0-thermal"));
  CHECK(value_of(text, "rivulet_sensor_read_errors_total{sensor=\"heat\"}") == 1);
  CHECK(value_of(text, "rivulet_gpu_utilization_ratio{gpu=\"ga10b\"}") == 0.374);
  CHECK(value_of(text, "rivulet_board_memory_total_bytes") == 7802804.0 * 1024);
  CHECK(value_of(text, "rivulet_energy_joules_total{rail=\"VDD_IN\"}") == 0);
  text = jetson.look(2s);
  CHECK(value_of(text, "rivulet_energy_joules_total{rail=\"VDD_IN\"}") == doctest::Approx(2 * 4.65152));
}

TEST_CASE("BoardWatch: it looks once a second") {
  Machine jetson("orin-jetpack6");
  jetson.look(0s);
  CHECK(value_of(jetson.look(100ms), "rivulet_sensor_read_errors_total{sensor=\"heat\"}") == 1);
  CHECK(value_of(jetson.look(900ms), "rivulet_sensor_read_errors_total{sensor=\"heat\"}") == 2);
}

TEST_CASE("BoardWatch: energy that the machine counts itself begins with the first look, and may wrap") {
  Machine desktop("plain-x86");
  const auto counter = "sys/class/powercap/intel-rapl:0/energy_uj";
  const auto series = "rivulet_energy_joules_total{rail=\"package-0\"}";
  CHECK(value_of(desktop.look(0s), series) == 0);
  desktop.root.write(counter, "223456789\n");
  CHECK(value_of(desktop.look(1s), series) == doctest::Approx(100));
  desktop.root.write(counter, "1000000\n");  // past max_energy_range_uj
  CHECK(value_of(desktop.look(1s), series) == doctest::Approx(100 + 262143.32885 - 223.456789 + 1));
}

TEST_CASE("BoardWatch: a sensor that goes loses its series, and has it again when it is back") {
  Machine jetson("xavier-jetpack5");
  CHECK(value_of(jetson.look(0s), "rivulet_gpu_utilization_ratio{gpu=\"gv11b\"}") == 0);
  const auto load = jetson.root.path() / "sys/class/devfreq/17000000.gv11b/device/load";
  std::filesystem::remove(load);
  CHECK_FALSE(contains(jetson.look(1s), "rivulet_gpu_utilization_ratio{"));
  jetson.root.write("sys/class/devfreq/17000000.gv11b/device/load", "1000\n");
  CHECK(value_of(jetson.look(1s), "rivulet_gpu_utilization_ratio{gpu=\"gv11b\"}") == 1);
}

TEST_CASE("BoardWatch: a rail that falls silent has no power, and not one of 0 W, until it speaks again") {
  Machine jetson("orin-jetpack6");
  const auto current = "sys/bus/i2c/devices/1-0040/hwmon/hwmon1/curr1_input";
  const auto series = "rivulet_energy_joules_total{rail=\"VDD_IN\"}";
  jetson.look(0s);
  const double before = value_of(jetson.look(1s), series);
  CHECK(before > 4);
  for (const bool gone : {false, true}) {  // unreadable; missing
    if (gone)
      std::filesystem::remove(jetson.root.path() / current);
    else
      jetson.root.write(current, "no number\n");
    std::string text;
    for (int i = 0; i < 3; ++i) text = jetson.look(1s);
    CHECK(contains(text, series));  // some reads may fail
    const auto errors = "rivulet_sensor_read_errors_total{sensor=\"power\"}";
    const double failed = value_of(text, errors);
    CHECK(failed >= 3);
    for (int i = 0; i < 4; ++i) text = jetson.look(1s);
    CHECK_FALSE(contains(text, series));
    CHECK(value_of(text, errors) == failed + 4);
    CHECK(contains(text, "rivulet_energy_joules_total{rail=\"VDD_SOC\"}"));
    jetson.root.write(current, "1000\n");
    CHECK(value_of(jetson.look(1s), series) >= 0);
    const double again = value_of(jetson.look(1s), series);
    CHECK(value_of(jetson.look(1s), series) > again);
  }
}

TEST_CASE(
    "BoardWatch: throttling counts from the first look on; a monitor that goes takes its series along") {
  Machine jetson("orin-jetpack6");
  const auto monitor = "sys/class/hwmon/hwmon3/oc3_event_cnt";
  const auto series = "rivulet_throttle_events_total{by=\"oc3\"}";
  CHECK(value_of(jetson.look(0s), series) == 0);  // the 17 from before do not count for this process
  jetson.root.write(monitor, "20\n");
  CHECK(value_of(jetson.look(1s), series) == 3);
  jetson.root.write(monitor, "1\n");  // its driver was reloaded
  CHECK(value_of(jetson.look(1s), series) == 3);
  jetson.root.write(monitor, "2\n");
  CHECK(value_of(jetson.look(1s), series) == 4);
  std::filesystem::remove(jetson.root.path() / monitor);
  CHECK(contains(jetson.look(1s), series));
  const std::string text = jetson.look(5s);
  CHECK_FALSE(contains(text, series));
  CHECK(contains(text, "rivulet_throttle_events_total{by=\"oc1\"}"));
}

TEST_CASE("BoardWatch: of a machine that tells nothing there is no series") {
  Machine desktop("plain-x86");
  std::filesystem::remove_all(desktop.root.path() / "sys");
  const auto text = desktop.look(0s);
  for (const char* name :
       {"temperature_celsius{", "energy_joules_total{", "throttle_events_total{", "gpu_", "cpu_frequency"})
    CHECK_MESSAGE(!contains(text, std::string("rivulet_") + name), name);
}
