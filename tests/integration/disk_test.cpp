// A real device on a full disk: a small tmpfs in this process's own mount namespace.
#include <doctest/doctest.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "runtime/status/http/http_server.h"
#include "tests/support/device_group.h"
#include "tests/support/places.h"
#include "tests/support/small_disk.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

std::size_t files_in(const fs::path& folder, const char* extension) {
  std::size_t n = 0;
  for (const auto& file : fs::directory_iterator(folder)) n += file.path().extension() == extension ? 1 : 0;
  return n;
}

double number_behind(const std::string& page, const std::string& name) {
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(name)) return std::stod(line.substr(line.rfind(' ') + 1));
  return 0;
}

}  // namespace

TEST_CASE("Full disk: the device goes on, keeps what it has, says so, and saves again when there is room") {
  const TempDir folder;
  const auto checkpoints = folder.path() / "checkpoints";
  SmallDisk disk(checkpoints, "240k");  // room for two states of 95 KB, but not three
  const int port = free_port();
  const auto config = source_path("examples/mnist/device.toml");
  const auto device =
      start_rivulet({"run", "--config", config, "--set", "model.name=linear", "--set",
                     "source.type=synthetic", "--set", "checkpoint.every.rounds=1", "--devices", "1",
                     "--data-dir", folder.path().string(), "--http", "127.0.0.1:" + std::to_string(port)});
  const auto count = [&](const std::string& name) {
    const auto page = runtime::http_get("127.0.0.1", port, "/metrics");
    return page ? number_behind(page.value(), "rivulet_" + name) : 0.0;
  };
  const std::string saved = "checkpoints_total{result=\"ok\"}";
  const std::string failed = "checkpoints_total{result=\"failed\"}";
  REQUIRE(wait_until([&] { return count(failed) >= 5; }, 60s));
  CHECK(count(saved) == 2);
  CHECK(contains(device->errors(), "no checkpoint was written"));
  CHECK(contains(device->errors(), checkpoints.string()));
  CHECK(contains(device->errors(), std::generic_category().message(ENOSPC)));
  const double steps = count("train_steps_total{result=\"applied\"}");
  CHECK(wait_until([&] { return count("train_steps_total{result=\"applied\"}") > steps + 5; }, 30s));
  CHECK(files_in(checkpoints, ".ckpt") == 2);
  const auto verified = run_rivulet({"checkpoint", "verify", "--config", config, "--set", "model.name=linear",
                                     "--data-dir", folder.path().string()},
                                    60s);
  CHECK(verified.status.code == 0);

  disk.resize("4m");
  CHECK(wait_until([&] { return count(saved) >= 10; }, 60s));
  device->send_signal(SIGTERM);
  const auto ended = device->wait(30s);
  REQUIRE(ended);
  CHECK(ended->code == 0);
  CHECK(files_in(checkpoints, ".tmp") == 0);
  CHECK(files_in(checkpoints, ".ckpt") >= 3);
}
