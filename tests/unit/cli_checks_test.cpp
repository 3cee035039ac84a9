#include <doctest/doctest.h>

#include <fstream>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/cli/checks/checks.h"
#include "runtime/cli/checks/loaded_objects.h"
#include "runtime/cli/demo/demo_plan.h"
#include "runtime/status/http/http_server.h"
#include "tests/support/temp_dir.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::runtime::cli;

TEST_CASE(
    "Doctor: a function is found in the one library that defines it, and not in those that only use it") {
  const auto kafka = loaded_objects_defining("rd_kafka_new");
  REQUIRE(kafka.size() == 1);
  CHECK(kafka.front().find("librdkafka") != std::string::npos);
  CHECK(loaded_objects_defining("no_such_function_anywhere").empty());
}

TEST_CASE("Doctor: a port that is taken is said to be, and with which flag to choose another") {
  HttpServer::Pages pages{[] { return std::string(); }, [](std::string&) { return true; },
                          [](std::string&) { return true; }, [] { return std::string("{}"); }};
  auto server = HttpServer::start("127.0.0.1:0", pages);
  REQUIRE(server);
  const auto address = "127.0.0.1:" + std::to_string(server.value()->port());
  const auto taken = port_check(address);
  CHECK(taken.level == CheckLevel::fail);
  CHECK(taken.value.find(address) != std::string::npos);
  CHECK(taken.hint.find("--http") != std::string::npos);
  server.value().reset();
  CHECK(port_check(address).level == CheckLevel::ok);
  CHECK(port_check("off").level == CheckLevel::ok);
  CHECK(port_check("nonsense").level == CheckLevel::fail);
}

TEST_CASE(
    "Doctor: a data directory that cannot be written to is said to be, and trying leaves nothing behind") {
  const testing::TempDir folder;
  const auto file = folder.write("file", "x");
  const auto checked = [](const std::filesystem::path& path) {
    Config config;
    config.job.name = "job";
    config.device.id = "a";
    config.device.data_dir = path.string();
    return data_dir_check(config);
  };
  CHECK(checked(file / "below").level == CheckLevel::fail);
  CHECK(checked(folder.path() / "new").level == CheckLevel::ok);
  CHECK(checked(folder.path() / "new/and/deep").level == CheckLevel::ok);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "new"));
  CHECK(checked(folder.path()).level == CheckLevel::ok);
  CHECK(std::filesystem::exists(file));
  folder.write("owner", "job job\ndevice b\n");
  const auto foreign = checked(folder.path());
  CHECK(foreign.level == CheckLevel::fail);
  CHECK(foreign.value.find("belongs to device b of job job") != std::string::npos);
}

TEST_CASE("Doctor: every line has a level, and what is not well has a hint") {
  auto checks = machine_checks();
  for (auto& check : version_checks()) checks.push_back(check);
  checks.push_back(gloo_check());
  for (const auto& check : checks) {
    CAPTURE(check.name);
    CHECK_FALSE(check.value.empty());
    CHECK((check.level == CheckLevel::ok) == check.hint.empty());
  }
  const auto json = nlohmann::json::parse(checks_to_json(checks));
  REQUIRE(json.size() == checks.size());
  CHECK(json[0].contains("name"));
  CHECK(json[0].contains("level"));
  CHECK(json[0].contains("hint"));
  CHECK(render_check({"a", CheckLevel::fail, "b", "c"}, false) ==
        "fail  a                    b\n      hint: c");
}

TEST_CASE("Checks: bfloat16 on a processor without instructions for it is warned of") {
  Config config;
  config.device.type = "cpu";
  CHECK(autocast_checks(config, "avx2 fma").empty());
  config.model.autocast = "bfloat16";
  const auto slow = autocast_checks(config, "avx2 fma");
  REQUIRE(slow.size() == 1);
  CHECK(slow[0].level == CheckLevel::warn);
  CHECK(slow[0].value == "this processor has no instructions for bfloat16");
  for (const char* has : {"avx2 avx512_bf16", "avx2 amx_bf16", "asimd bf16 sve"}) {
    const auto fast = autocast_checks(config, has);
    REQUIRE(fast.size() == 1);
    CHECK(fast[0].level == CheckLevel::ok);
  }
}

TEST_CASE("Doctor: free ports are free and different, and none that the kernel gives to anybody") {
  const auto ports = free_ports(8);
  REQUIRE(ports);
  int given = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> given;
  for (const int port : ports.value()) CHECK(port < given);
  for (std::size_t i = 0; i < ports.value().size(); ++i) {
    CHECK(port_check("127.0.0.1:" + std::to_string(ports.value()[i])).level == CheckLevel::ok);
    for (std::size_t j = 0; j < i; ++j) CHECK(ports.value()[i] != ports.value()[j]);
  }
}

TEST_CASE("Checks: what the largest size of a group costs is said, and warned of where it is not tested") {
  Config config;
  config.job.name = "pumps";
  config.model.name = "linear";
  config.decode.shape = {3};
  CHECK(size_checks(config).empty());
  config.job.devices = 4;
  CHECK(size_checks(config).empty());

  config.job.devices = {2, 3, 8};
  const auto some = size_checks(config);
  REQUIRE(some.size() == 1);
  CHECK(some[0].level == CheckLevel::ok);
  CHECK(some[0].value.starts_with("up to 8 devices: "));
  CHECK(some[0].value.find(" 21 connections, ") != std::string::npos);  // three to each of seven peers
  CHECK(some[0].value.ends_with(" for 3)"));

  config.job.devices = {2, 64, 64};
  CHECK(size_checks(config).at(0).level == CheckLevel::ok);
  for (const GroupSizes& sizes : {GroupSizes(2, 64, 65), GroupSizes(65)}) {
    config.job.devices = sizes;
    const auto many = size_checks(config);
    REQUIRE(many.size() == 1);
    CHECK(many[0].level == CheckLevel::warn);
    CHECK(many[0].hint.find("up to 64 devices") != std::string::npos);
  }
}
