// A training group whose control topic is deleted: it reports that, continues, and ends on request. Real
// processes on a real Apache Kafka.
#include <doctest/doctest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/status/http/http_server.h"
#include "tests/support/device_group.h"
#include "tests/support/kafka_client.h"
#include "tests/support/shared_kafka.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

std::uint64_t saved_step(const DeviceGroup& group, int device) {
  std::vector<std::string> problems;
  const auto all = runtime::CheckpointFolder(runtime::checkpoints_in(group.directory(device))).list(problems);
  return all.empty() ? 0 : all.front().stamp.step;
}

}  // namespace

TEST_CASE("Stop: a group whose control topic was deleted is not ready, trains on, and ends at SIGTERM") {
  const std::string brokers = shared_kafka().brokers();
  REQUIRE(create_topic(brokers, "gone", 2));
  DeviceGroup group({.devices = 2,
                     .brokers = brokers,
                     .topic = "gone",
                     .on_peer_loss = "reform",
                     .arguments = {"--set", "job.name=gone", "--set", "model.name=linear", "--set",
                                   "checkpoint.every.interval=1s", "--set", "batch.max_wait=200ms"}});
  group.start_all();
  group.feed(100);
  REQUIRE_MESSAGE(group.formed(60s), group.story());
  REQUIRE_MESSAGE(group.trained(10, 60s), group.story());
  const auto ready = [&](int device) {
    const auto answer = runtime::http_request("127.0.0.1", group.http_port(device), "/readyz", "");
    return answer ? answer.value() : runtime::HttpAnswer{};
  };
  CHECK(ready(0).status == 200);

  REQUIRE(delete_topic(brokers, "rivulet.gone.control"));
  for (const int device : {0, 1}) {
    CAPTURE(device);
    runtime::HttpAnswer said;
    CHECK(wait_until([&] { return (said = ready(device)).status == 503; }, 60s));
    CHECK_MESSAGE(contains(said.body, "control topic"), said.body);
    CHECK(contains(group.status(device).value("control_trouble", ""), "control topic"));
  }
  const auto steps = group.status(0).value("steps", 0);
  CHECK_MESSAGE(group.trained(steps + 5, 60s), group.story());

  std::vector<std::uint64_t> at_least;
  for (const int device : {0, 1}) at_least.push_back(group.status(device).value("steps", std::uint64_t{0}));
  for (const int device : {0, 1}) group.device(device).send_signal(SIGTERM);
  for (const int device : {0, 1}) {
    CAPTURE(device);
    const auto ended = group.device(device).wait(60s);
    INFO(group.story());
    REQUIRE(ended);
    CHECK(ended->code == 0);
    CHECK(saved_step(group, device) >= at_least[static_cast<std::size_t>(device)]);
  }
}
