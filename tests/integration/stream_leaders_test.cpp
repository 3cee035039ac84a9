// One broker of a cluster is unreachable, or advertises an address without a server: a device trains the rows
// of the others, and every command names the address.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "stream/embedded_broker.h"
#include "stream/kafka/leaders.h"
#include "tests/support/kafka_client.h"
#include "tests/support/kafka_server.h"
#include "tests/support/rivulet_program.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using Json = nlohmann::json;

namespace {

const char* const configuration = R"(version = 1
[job]
name = "leaders"
devices = 1
[source]
topics = ["rows"]
[decode]
format = "json"
json = { features = ["a", "b"], target = "y" }
[batch]
max = 16
max_wait = "100ms"
[model]
name = "linear"
classes = 2
[watchdog]
deadline = "10s"
[http]
listen = "off"
)";

constexpr std::size_t rows_each = 40;

/// `rows_each` rows for each of these partitions.
std::vector<TestRecord> rows_for(const std::vector<int>& partitions) {
  std::vector<TestRecord> records;
  for (const int p : partitions)
    for (std::size_t i = 0; i < rows_each; ++i)
      records.push_back(
          {.value = R"({"a":)" + std::to_string(i % 7) + R"(,"b":1,"y":)" + std::to_string(i % 2) + "}",
           .partition = p});
  return records;
}

/// The program with this configuration.
struct Device {
  explicit Device(std::string address) : brokers(std::move(address)) {
    config = folder.write("d.toml", configuration).string();
  }
  [[nodiscard]] std::vector<std::string> words(std::vector<std::string> first,
                                               const std::vector<std::string>& more = {}) const {
    first.insert(first.end(), {"--config", config, "--brokers", brokers});
    first.insert(first.end(), more.begin(), more.end());
    return first;
  }
  [[nodiscard]] std::string data() const { return (folder.path() / "data").string(); }
  TempDir folder;
  std::string brokers;
  std::string config;
};

/// The status page of a device, as JSON; null while there is none.
Json status_of(const std::string& address) {
  const auto said = rivulet_run({"status", address, "--json"}, 20s);
  return said.status.code == 0 ? Json::parse(said.output, nullptr, false).value("status", Json()) : Json();
}

std::vector<int> in_state(const Json& status, const std::string& state) {
  std::vector<int> partitions;
  if (!status.is_object()) return partitions;
  for (const Json& p : status["partitions"])
    if (p["state"] == state) partitions.push_back(p["partition"]);
  return partitions;
}

/// Two nodes; the second is only a broker. The controller does not move partitions away from a silent broker.
struct TwoNodes {
  TwoNodes() {
    const std::string voters = "1@127.0.0.1:" + std::to_string(free_port());
    KafkaServerOptions of_first;
    of_first.brokers = "127.0.0.1:" + std::to_string(free_port());
    of_first.properties = {
        {"controller.quorum.voters", voters},
        {"listeners", "PLAINTEXT://" + of_first.brokers + ",CONTROLLER://" + voters.substr(2)},
        {"advertised.listeners", "PLAINTEXT://" + of_first.brokers},
        {"broker.session.timeout.ms", "600000"}};
    first = must(KafkaServer::start(of_first));
    // All topics that the group needs are on the first one.
    REQUIRE(create_topic(first->brokers(), "rivulet.leaders.control", 1,
                         {{"message.timestamp.type", "LogAppendTime"}, {"retention.ms", "-1"}}));
    KafkaServerOptions of_second;
    of_second.brokers = "127.0.0.1:" + std::to_string(free_port());
    of_second.properties = {{"process.roles", "broker"},
                            {"node.id", "2"},
                            {"controller.quorum.voters", voters},
                            {"listeners", "PLAINTEXT://" + of_second.brokers},
                            {"advertised.listeners", "PLAINTEXT://" + of_second.brokers}};
    second = must(KafkaServer::start(of_second));
    REQUIRE(create_topic(first->brokers(), "rows", 4));
  }
  static std::unique_ptr<KafkaServer> must(Result<std::unique_ptr<KafkaServer>> started) {
    REQUIRE_MESSAGE(started, started.error().message);
    return std::move(started).value();
  }
  /// Partitions of the topic "rows" that this node leads.
  [[nodiscard]] std::vector<int> led_by(std::int32_t node) const {
    stream::kafka::NobodyListens silence;
    const auto client = stream::kafka::Client::open(stream::kafka::ClientKind::consumer,
                                                    {{"bootstrap.servers", first->brokers()}}, {}, silence);
    REQUIRE(client);
    const std::string topic = "rows";
    const auto leaders = stream::kafka::leaders_of(client.value()->handle(), std::span(&topic, 1), 20s);
    REQUIRE_MESSAGE(leaders, leaders.error().message);
    std::vector<int> led;
    for (std::size_t p = 0; p < leaders.value().at(topic).size(); ++p)
      if (leaders.value().at(topic)[p].broker == node) led.push_back(static_cast<int>(p));
    return led;
  }
  std::unique_ptr<KafkaServer> first;
  std::unique_ptr<KafkaServer> second;
};

/// An embedded cluster whose second broker leads the only partition of "rows", but does not exist at its
/// advertised address.
std::unique_ptr<stream::EmbeddedBroker> misadvertised() {
  auto cluster = stream::EmbeddedBroker::start({{"rows", 1}, {"rivulet.leaders.control", 1}}, 2);
  REQUIRE_MESSAGE(cluster, cluster.error().message);
  REQUIRE(testing::produce(cluster.value()->bootstrap_servers(), "rows", rows_for({0})));
  cluster.value()->set_leader("rows", 0, 2);
  cluster.value()->set_down(2, true);
  return std::move(cluster).value();
}

const std::string advertised =
    "topic \"rows\", partition 0: no leader answers: broker 2 advertises the address 127.0.0.1:";

}  // namespace

TEST_CASE(
    "Leaders: a device whose second broker hangs trains all rows of the first, names it, and takes the rest "
    "later") {
  TwoNodes nodes;
  const auto good = nodes.led_by(1);
  const auto bad = nodes.led_by(2);
  REQUIRE(!good.empty());
  REQUIRE(!bad.empty());
  REQUIRE(testing::produce(nodes.first->brokers(), "rows", rows_for({0, 1, 2, 3})));
  nodes.second->suspend();
  const Device device(nodes.first->brokers());
  const std::string page = "127.0.0.1:" + std::to_string(free_port());
  auto started = Process::start(rivulet_with(
      device.words({"run"}, {"--data-dir", device.data(), "--http", page, "--partitions", "0,1,2,3"})));
  REQUIRE(started);
  Process& running = *started.value();
  Json status;
  const auto until = [&](const std::function<bool()>& done) {
    return wait_until(
        [&] {
          status = status_of(page);
          return status.is_object() && done();
        },
        90s);
  };
  const std::size_t of_first = good.size() * rows_each;
  CHECK_MESSAGE(until([&] { return status["rows_trained"] == of_first; }), status.dump());
  CHECK_MESSAGE(until([&] { return in_state(status, "unreachable") == bad; }), status.dump());
  CHECK(in_state(status, "reading") == good);
  CHECK(contains(running.errors(),
                 "no leader answers: broker 2 advertises the address " + nodes.second->brokers()));
  CHECK(running.runs_for(12s));  // longer than the watchdog's deadline
  REQUIRE(testing::produce(nodes.first->brokers(), "rows", rows_for(good)));
  CHECK_MESSAGE(until([&] { return status["rows_trained"] == 2 * of_first; }), status.dump());
  nodes.second->resume();
  CHECK_MESSAGE(until([&] { return status["rows_trained"] == 2 * of_first + bad.size() * rows_each; }),
                status.dump());
  CHECK_MESSAGE(until([&] { return in_state(status, "unreachable").empty(); }), status.dump());
  // Also while it is read.
  nodes.second->suspend();
  CHECK_MESSAGE(until([&] { return in_state(status, "unreachable") == bad; }), status.dump());
  REQUIRE(testing::produce(nodes.first->brokers(), "rows", rows_for(good)));
  CHECK_MESSAGE(until([&] { return status["rows_trained"] == 3 * of_first + bad.size() * rows_each; }),
                status.dump());
  running.send_signal(SIGTERM);
  const auto ended = running.wait(30s);
  REQUIRE(ended);
  INFO(running.errors());
  CHECK(ended->code == 0);
  nodes.second->resume();
}

TEST_CASE("Leaders: validate, peek and run name an advertised address where nobody answers") {
  const auto cluster = misadvertised();
  const std::string servers = cluster->bootstrap_servers();
  const Device device(servers.substr(0, servers.find(',')));
  for (const auto& words : std::vector<std::vector<std::string>>{
           device.words({"validate"}, {"--environment", "--partitions", "0", "--data-dir", device.data()}),
           device.words({"peek", "rows"}, {"--partitions", "0"}),
           device.words({"run"}, {"--partitions", "0", "--data-dir", device.data()})}) {
    const auto said = rivulet_run(words, 90s);
    INFO(words[0] << ": " << said.output << said.errors);
    CHECK_FALSE(said.timed_out);
    CHECK(said.status.code == 69);
    CHECK(contains(said.output + said.errors, advertised));
    CHECK_FALSE(contains(said.output, "kafka-acls"));
  }
}

TEST_CASE("Leaders: peek ends by Ctrl-C while it waits for a broker that is silent") {
  const auto cluster = misadvertised();
  cluster->set_down(2, false);
  cluster->set_silent(2, true);
  const Device device(cluster->bootstrap_servers());
  auto peek = Process::start(rivulet_with(device.words({"peek", "rows"}, {"--partitions", "0"})));
  REQUIRE(peek);
  CHECK(peek.value()->runs_for(3s));
  peek.value()->send_signal(SIGINT);
  CHECK(peek.value()->wait(9s).has_value());
}

TEST_CASE("Leaders: validate of a group ends on a topic that never stops growing") {
  auto cluster = stream::EmbeddedBroker::start({{"rows", 2}, {"rivulet.leaders.control", 1}});
  REQUIRE(cluster);
  const std::string brokers = cluster.value()->bootstrap_servers();
  std::atomic<bool> enough{false};
  std::thread feeder([&] {
    while (!enough) static_cast<void>(testing::produce(brokers, "rows", rows_for({0, 1})));
  });
  const Device device(brokers);
  const auto said = rivulet_run(device.words({"validate"}, {"--environment", "--devices", "2", "--partitions",
                                                            "0", "--data-dir", device.data()}),
                                90s);
  enough = true;
  feeder.join();
  INFO(said.output << said.errors);
  CHECK_FALSE(said.timed_out);
  CHECK(said.status.code == 0);
  CHECK(contains(said.output, "labels of rows"));
}
