#pragma once
#include <doctest/doctest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/device_group.h"
#include "tests/support/kafka_server.h"
#include "tests/support/network.h"

namespace rivulet::testing {

/// A group whose devices have separate network namespaces, with shaped links to the broker's machine and to
/// each other. A lost peer makes the others form anew. Needs root. Failures of helpers fail the test.
struct Machines {
  explicit Machines(int devices, const std::vector<std::string>& arguments = {}, int beside_broker = -1)
      : count(devices) {
    auto made = Network::create({.nodes = devices, .above_loopback = beside_broker >= 0});
    REQUIRE_MESSAGE(made, (made ? "" : made.error().message));
    network = std::move(made).value();
    auto started =
        KafkaServer::start({.host = network->host_address(), .listens_on_all = beside_broker >= 0});
    REQUIRE_MESSAGE(started, (started ? "" : started.error().message));
    kafka = std::move(started).value();
    REQUIRE(create_topic(kafka->brokers(), "mnist", devices));
    group = std::make_unique<DeviceGroup>(DeviceGroupOptions{.devices = devices,
                                                             .brokers = kafka->brokers(),
                                                             .on_peer_loss = "reform",
                                                             .network = network.get(),
                                                             .beside_broker = beside_broker,
                                                             .arguments = arguments});
  }

  /// Starts all devices with 100 rows/s each, and waits until each has applied `steps` rounds.
  void train(int steps) {
    group->feed(100);
    group->start_all();
    REQUIRE_MESSAGE(group->formed(std::chrono::seconds(60)), group->story());
    REQUIRE_MESSAGE(group->trained(steps, std::chrono::seconds(60)), group->story());
  }

  void set_connected(int device, bool connected) {
    const Status set = network->set_connected(device, connected);
    REQUIRE_MESSAGE(set, (set ? "" : set.error().message));
  }

  /// Rounds that `device` has applied since its start; -1 unless all devices are in the view.
  [[nodiscard]] int rounds_of_all(int device = 0) const {
    const auto status = group->status(device);
    return status.is_object() && status.value("world", 0) == count ? status.value("steps", -1) : -1;
  }

  int count;
  std::unique_ptr<Network> network;
  std::unique_ptr<KafkaServer> kafka;
  std::unique_ptr<DeviceGroup> group;
};

}  // namespace rivulet::testing
