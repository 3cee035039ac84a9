// Power, heat, load and memory from a machine's kernel: file trees of real boards, and invalid ones.
#include "devices/sensors.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "tests/support/sensor_tree.h"
#include "tests/support/temp_dir.h"

using namespace rivulet;
using namespace rivulet::devices;
using namespace rivulet::testing;

namespace {

namespace fs = std::filesystem;

SensorReadings read(const std::string& name) {
  const TempDir root;
  plant_sensors(root, name);
  return Sensors(root.path()).read();
}

double celsius_of(const SensorReadings& r, const std::string& zone) {
  const auto found = std::ranges::find(r.heat, zone, &ZoneHeat::zone);
  REQUIRE_MESSAGE(found != r.heat.end(), zone);
  return found->celsius;
}

const RailPower& rail(const SensorReadings& r, const std::string& name) {
  const auto found = std::ranges::find(r.power, name, &RailPower::rail);
  REQUIRE_MESSAGE(found != r.power.end(), name);
  return *found;
}

}  // namespace

TEST_CASE("Sensors: an Orin with JetPack 6") {
  const TempDir root;
  plant_sensors(root, "orin-jetpack6");
  const Sensors sensors(root.path());
  CHECK(sensors.board() == "NVIDIA Jetson Orin Nano Developer Kit");
  const auto r = sensors.read();
  CHECK(r.heat.size() == 3);
  CHECK(celsius_of(r, "cpu-thermal") == 48.531);
  CHECK(r.heat_errors == 1);  // cv0 is powered down
  CHECK(r.power.size() == 3);
  CHECK(rail(r, "VDD_IN").watts == doctest::Approx(4.65152));
  CHECK(rail(r, "VDD_SOC").watts == doctest::Approx(1.45152));
  CHECK(r.total_rail == "VDD_IN");
  REQUIRE(r.gpus.size() == 1);
  CHECK(r.gpus[0].gpu == "ga10b");
  CHECK(r.gpus[0].utilization == 0.374);
  CHECK(r.gpus[0].hertz == 306e6);
  CHECK(r.gpus[0].hertz_max == 624.75e6);
  CHECK(r.cpu_hertz == 1510.4e6);
  REQUIRE(r.memory);
  CHECK(r.memory->total_bytes == 7802804.0 * 1024);
  CHECK(r.memory->available_bytes == 4100000.0 * 1024);
  REQUIRE(r.throttles.size() == 2);  // an enabled flag is not a count
  CHECK(r.throttles[0].by == "oc1");
  CHECK(r.throttles[0].events == 2);
  CHECK(r.throttles[1].by == "oc3");
  CHECK(r.throttles[1].events == 17);
}

TEST_CASE("Sensors: an Orin with JetPack 7 whose load cannot be read") {
  const auto r = read("orin-jetpack7");
  REQUIRE(r.gpus.size() == 1);
  CHECK_FALSE(r.gpus[0].utilization);  // absent, not 0
  CHECK_FALSE(r.gpus[0].hertz_max);
  CHECK(r.gpu_errors == 1);
  CHECK(r.power.size() == 2);
  CHECK(r.power_errors == 1);
  CHECK_FALSE(r.total_rail);
}

TEST_CASE("Sensors: a Thor, whose GPU has another name and does not tell its load") {
  const auto r = read("thor-jetpack7");
  REQUIRE(r.gpus.size() == 1);
  CHECK(r.gpus[0].gpu == "gpu-gpc-0");
  CHECK_FALSE(r.gpus[0].utilization);
  CHECK(r.gpu_errors == 0);    // the board lacks one, which is not an error
  CHECK(r.power.size() == 2);  // NC is not connected
  CHECK(rail(r, "VDD_GPU").watts == 18.0);
}

TEST_CASE("Sensors: a Xavier with JetPack 5, idle") {
  const auto r = read("xavier-jetpack5");
  REQUIRE(r.gpus.size() == 1);
  CHECK(r.gpus[0].gpu == "gv11b");
  REQUIRE(r.gpus[0].utilization);
  CHECK(*r.gpus[0].utilization == 0);  // measured, so it is 0
  CHECK(r.total_rail == "VDD_IN");
  CHECK(celsius_of(r, "GPU-therm") == 36);
}

TEST_CASE("Sensors: a desktop has neither rails nor such a GPU, but counts its energy") {
  const TempDir root;
  plant_sensors(root, "plain-x86");
  const Sensors sensors(root.path());
  CHECK(sensors.board() == "OptiPlex 7090");
  const auto r = sensors.read();
  CHECK(r.gpus.empty());
  CHECK(celsius_of(r, "acpitz") == 27.8);
  CHECK(celsius_of(r, "acpitz-1") == -5);
  REQUIRE(r.power.size() == 1);
  CHECK_FALSE(r.power[0].watts);
  CHECK(r.power[0].joules == doctest::Approx(123.456789));
  CHECK(r.power[0].joules_wrap == doctest::Approx(262143.32885));
  REQUIRE(r.throttles.size() == 1);  // both cores are of one package
  CHECK(r.throttles[0].by == "package-0");
  CHECK(r.throttles[0].events == 5);
}

TEST_CASE("Sensors: of nothing nothing is known, and nothing is wrong") {
  const TempDir root;
  const auto r = Sensors(root.path()).read();
  CHECK(r.heat.empty());
  CHECK(r.power.empty());
  CHECK(r.gpus.empty());
  CHECK_FALSE(r.memory);
  CHECK_FALSE(r.cpu_hertz);
  CHECK(r.heat_errors + r.power_errors + r.gpu_errors == 0);
  CHECK(Sensors(root.path()).board().empty());
  CHECK(Sensors("/nowhere/at/all").read().heat.empty());
  CHECK(r.throttles.empty());
}

TEST_CASE("Sensors: a part that appears late is found, one that goes is not remembered") {
  const TempDir root;
  const Sensors sensors(root.path());
  CHECK(sensors.read().gpus.empty());
  plant_sensors(root, "xavier-jetpack5");
  CHECK(sensors.read().gpus.size() == 1);
  fs::remove_all(root.path() / "sys/class/devfreq");
  CHECK(sensors.read().gpus.empty());
}

TEST_CASE("Sensors: what is not a number, no file, or has no end costs a count, not the rest") {
  const TempDir root;
  plant_sensors(root, "plain-x86");
  root.write("sys/class/thermal/thermal_zone3/type", "broken\n");
  root.write("sys/class/thermal/thermal_zone3/temp", "1e3x\n");
  root.write("sys/class/thermal/thermal_zone4/type", "folder\n");
  fs::create_directories(root.path() / "sys/class/thermal/thermal_zone4/temp");
  root.write("sys/class/thermal/thermal_zone5/type", std::string(100'000, 'x'));
  root.write("sys/class/thermal/thermal_zone5/temp", "1000\n");
  root.write("sys/class/thermal/thermal_zone6/type", "a\"b\\c d\x01\n");
  root.write("sys/class/thermal/thermal_zone6/temp", "2000\n");
  const auto r = Sensors(root.path()).read();
  CHECK(r.heat_errors == 2);
  CHECK(celsius_of(r, std::string(64, 'x')) == 1);
  CHECK(celsius_of(r, "a_b_c_d_") == 2);
  CHECK(r.heat.size() == 5);
}

TEST_CASE("Sensors: a machine with more zones than anybody reads has a bound") {
  const TempDir root;
  for (int i = 0; i < 200; ++i) {
    const auto zone = "sys/class/thermal/thermal_zone" + std::to_string(i);
    root.write(zone + "/type", "z" + std::to_string(i));
    root.write(zone + "/temp", "1000");
  }
  CHECK(Sensors(root.path()).read().heat.size() == Sensors::most);
}

TEST_CASE("Sensors: this machine can be read") {
  const auto r = Sensors("/").read();
  REQUIRE(r.memory);
  CHECK(r.memory->total_bytes >= r.memory->available_bytes);
  CHECK(r.memory->available_bytes > 0);
}
