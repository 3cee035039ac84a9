// The README's commands from one's own Kafka to a trained model, against a real Apache Kafka; and the other
// example through the embedded broker.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/support/device_group.h"
#include "tests/support/kafka_client.h"
#include "tests/support/kafka_server.h"
#include "tests/support/places.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

const std::string root = source_path();
const std::string sensors = "examples/sensors-json/device.toml";

/// Runs a line as typed in the repository's root, with the binary in PATH; this test's broker replaces
/// `localhost:9092`.
RunOutput type(const std::string& line, const std::string& brokers, const TempDir& folder) {
  const std::string binary = rivulet_binary();
  ProcessOptions options;
  options.command = {"bash", "-euo", "pipefail", "-c", line};
  options.directory = root;
  options.environment = {{"PATH", binary.substr(0, binary.rfind('/')) + ":/usr/local/bin:/usr/bin:/bin"},
                         {"RIVULET_BROKERS", brokers},
                         {"RIVULET_DATA_DIR", (folder.path() / "data").string()},
                         {"RIVULET_HTTP", "127.0.0.1:" + std::to_string(free_port())}};
  return run(options, 120s);
}

/// The shell commands of this README section; a change of the README must fail the test.
void check_readme_says(const std::string& line) {
  CAPTURE(line);
  CHECK(contains(read_file(root + "/README.md"), "\n" + line));
}

}  // namespace

TEST_CASE("README: JSON lines from kcat into a real Kafka are peeked at, validated and trained on") {
  auto kafka = KafkaServer::start();
  REQUIRE(kafka);
  const std::string& brokers = kafka.value()->brokers();
  REQUIRE(create_topic(brokers, "readings", 1));
  const TempDir folder;

  check_readme_says("kcat -P -b localhost:9092 -t readings -p 0 < examples/sensors-json/readings.jsonl");
  const auto produced = type(
      "kcat -P -b " + brokers + " -t readings -p 0 < examples/sensors-json/readings.jsonl", brokers, folder);
  INFO(produced.errors);
  REQUIRE(produced.status.code == 0);
  const auto marks = watermarks(brokers, "readings", 0);
  REQUIRE(marks);
  CHECK(marks.value().second >= 500);

  const std::string peek = "rivulet peek readings --config " + sensors + " --rows 3";
  check_readme_says(peek);
  const auto seen = type(peek, brokers, folder);
  INFO(seen.errors);
  INFO(seen.output);
  CHECK(seen.status.code == 0);
  std::size_t labels = 0;
  for (std::size_t at = 0; (at = seen.output.find("target ", at)) != std::string::npos; ++at) ++labels;
  CHECK(labels == 3);
  CHECK(contains(seen.output, "3 rows shown, 0 dropped; no offset was committed"));

  const std::string validate = "rivulet validate " + sensors + " --environment";
  check_readme_says(validate);
  const auto valid = type(validate, brokers, folder);
  INFO(valid.errors);
  INFO(valid.output);
  CHECK(valid.status.code == 0);

  CHECK(committed_offset(brokers, "rivulet.pumps", "readings", 0).value() == -1);
  const std::string train = "rivulet run --config " + sensors + " --stop-after rows=1500";
  check_readme_says(train);
  const auto trained = type(train + " --json", brokers, folder);
  INFO(trained.errors);
  INFO(trained.output);
  REQUIRE(trained.status.code == 0);
  const auto summary = nlohmann::json::parse(last_line(trained.output));
  const auto rows = summary["devices"][0]["rows_trained"].get<std::int64_t>();
  CHECK(rows >= 1500);
  CHECK(summary["devices"][0]["id"] == "pump-house");
  // One row per record and none dropped: trained rows equal committed offsets.
  CHECK(committed_offset(brokers, "rivulet.pumps", "readings", 0).value() == rows);
}

TEST_CASE("Demo: on an existing Kafka it makes its own topics, plays, and measures") {
  auto kafka = KafkaServer::start();
  REQUIRE(kafka);
  const auto demo = run_rivulet({"demo", "--brokers", kafka.value()->brokers(), "--devices", "2", "--rates",
                                 "200,100", "--model", "linear", "--seconds", "8", "--json"},
                                90s);
  INFO(demo.output);
  INFO(demo.errors);
  REQUIRE(demo.status.code == 0);
  const auto summary = nlohmann::json::parse(last_line(demo.output));
  CHECK(summary["parameters_equal"] == true);
  CHECK(summary["accuracy"].get<double>() > 0.6);
  CHECK(summary["devices"].size() == 2);
}

TEST_CASE("README: two devices find each other on a real Kafka and end together") {
  auto kafka = KafkaServer::start();
  REQUIRE(kafka);
  REQUIRE(create_topic(kafka.value()->brokers(), "mnist", 2));
  DeviceGroupOptions options;
  options.devices = 2;
  options.brokers = kafka.value()->brokers();
  options.arguments = {"--stop-after", "rounds=50", "--set", "model.name=linear"};
  DeviceGroup group(options);  // the devices create the control topic
  group.start_all();
  group.feed(200);
  for (int i = 0; i < 2; ++i) {
    const auto ended = group.device(i).wait(90s);
    INFO(group.story());
    REQUIRE(ended);
    CHECK(ended->code == 0);
    CHECK(group.summary(i)["rounds"] == 50);
  }
  CHECK(group.summary(0)["devices"][0]["digest"] == group.summary(1)["devices"][0]["digest"]);
  CHECK(watermarks(kafka.value()->brokers(), "rivulet.mnist.control", 0).value().second > 0);
}

TEST_CASE("Example: mnist as it is trains LeNet-5 on two devices through the embedded broker") {
  DeviceGroupOptions options;
  options.devices = 2;
  options.arguments = {"--stop-after", "rounds=200"};
  DeviceGroup group(options);
  group.start_all();
  group.feed(200);
  for (int i = 0; i < 2; ++i) {
    const auto ended = group.device(i).wait(120s);
    INFO(group.story());
    REQUIRE(ended);
    CHECK(ended->code == 0);
    const auto summary = group.summary(i);
    CHECK(summary["rounds"] == 200);
    CHECK(summary["parameters_equal"] == true);
    CHECK(summary["accuracy"].get<double>() > 0.6);
    CHECK(summary["devices"][0]["rows_trained"].get<int>() > 500);
  }
  CHECK(group.summary(0)["devices"][0]["digest"] == group.summary(1)["devices"][0]["digest"]);
}
