// The ledger of a device on a real Kafka: good rows, bad ones of several kinds, records with many rows,
// offsets without records, a partition without a good row. `rivulet ledger` must report exactly these.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/rng.h"
#include "tests/support/kafka_client.h"
#include "tests/support/kafka_server.h"
#include "tests/support/places.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;
using Json = nlohmann::json;

namespace {

const char* const configuration = R"(version = 1
[job]
name = "books"
devices = 1
[device]
id = "keeper"
[source]
topics = ["rows"]
partitions = [0, 1]
[decode]
format = "json"
json = { features = ["a", "b"], target = "y", fill = "drop" }
[batch]
max = 16
max_wait = "100ms"
[model]
name = "linear"
classes = 2
[checkpoint]
every = { rounds = 40, interval = "500ms" }
[http]
listen = "off"
)";

std::string good(std::size_t i) {
  return R"({"a":)" + std::to_string(i % 7) + R"(,"b":1,"y":)" + std::to_string(i % 2) + "}";
}

/// Counts of what was produced to partition 0.
struct Produced {
  std::uint64_t good = 0;
  std::uint64_t malformed = 0;
  std::uint64_t missing = 0;
  std::uint64_t shared = 0;  ///< rows that are not the last of their record
};

/// A record of 1 to 5 rows, some of them bad, or one that is not JSON.
TestRecord made_up(Rng& rng, Produced& counts) {
  TestRecord record;
  if (rng.below(10) == 0) {
    ++counts.malformed;
    record.value = "{\"a\":";
    return record;
  }
  const std::size_t rows = 1 + rng.below(5);
  for (std::size_t i = 0; i < rows; ++i) {
    const bool bad = rng.below(4) == 0;
    ++(bad ? counts.missing : counts.good);
    record.value += (i == 0 ? "[" : ",") + (bad ? std::string(R"({"a":1,"y":0})") : good(rng.next()));
  }
  record.value += "]";
  counts.shared += rows - 1;
  return record;
}

struct Bench {
  Bench()
      : kafka(std::move(KafkaServer::start()).value()),
        config(folder.write("d.toml", configuration).string()) {
    REQUIRE(create_topic(brokers(), "rows", 2));
  }
  [[nodiscard]] const std::string& brokers() const { return kafka->brokers(); }
  [[nodiscard]] std::vector<std::string> command(std::vector<std::string> words) const {
    words.insert(words.begin(), rivulet_binary());
    words.insert(words.end(), {"--config", config, "--brokers", brokers(), "--data-dir",
                               (folder.path() / "data").string()});
    return words;
  }
  [[nodiscard]] RunOutput call(const std::vector<std::string>& words) const {
    ProcessOptions options;
    options.command = command(words);
    return run(options, 30s);
  }
  [[nodiscard]] std::int64_t committed(int partition) const {
    const auto offset = committed_offset(brokers(), "rivulet.books", "rows", partition);
    return offset ? offset.value() : -2;
  }
  /// Trains until both partitions are committed to their ends, then ends.
  void train() const {
    ProcessOptions options;
    options.command = command({"run"});
    auto device = Process::start(options);
    REQUIRE(device);
    const auto end = [&](int p) { return watermarks(brokers(), "rows", p).value().second; };
    const bool done = wait_until([&] { return committed(0) == end(0) && committed(1) == end(1); }, 60s);
    INFO(device.value()->errors());
    INFO("committed " << committed(0) << " of " << end(0) << ", " << committed(1) << " of " << end(1));
    CHECK(done);
    device.value()->send_signal(SIGTERM);
    const auto ended = device.value()->wait(15s);
    REQUIRE(ended);
    CHECK(ended->code == 0);
  }
  TempDir folder;
  std::unique_ptr<KafkaServer> kafka;
  std::string config;
};

/// True if a partition's rounds and skipped ranges cover it without gaps.
bool is_chain(const Json& partition) {
  auto at = partition["start"];
  for (const auto& round : partition["rounds"]) {
    if (round["first"] != at) return false;
    at = round["next"];
  }
  return at == partition["next"];
}

/// Output of kafka-consumer-groups for a partition: committed offset, end of the log, lag.
std::vector<std::string> group_offsets(const Bench& bench, int partition) {
  const auto described = bench.kafka->tool("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
                                           {"--describe", "--group", "rivulet.books"});
  INFO(described.output);
  std::istringstream lines(described.output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    const std::vector<std::string> row{std::istream_iterator<std::string>(words), {}};
    if (row.size() >= 6 && row[1] == "rows" && row[2] == std::to_string(partition))
      return {row[3], row[4], row[5]};
  }
  FAIL("no such row");
  return {};
}

}  // namespace

TEST_CASE("Ledger: every offset of a real topic has a fate, after a restart and with a log that goes on") {
  const Bench bench;
  Rng rng(7);
  Produced counts;
  std::int64_t holes = 0;
  for (int part = 0; part < 2; ++part) {
    std::vector<TestRecord> records;
    records.reserve(350);
    for (int i = 0; i < 300; ++i) records.push_back(made_up(rng, counts));
    for (int i = 0; i < 50; ++i) records.push_back({"not a row", "", 1});
    REQUIRE(produce(bench.brokers(), "rows", records));
    const auto end = [&] { return watermarks(bench.brokers(), "rows", 0).value().second; };
    const auto before = end();
    REQUIRE(produce_and_abort(bench.brokers(), "rows", {{good(1)}, {good(2)}}));
    REQUIRE(wait_until([&] { return end() == before + 3; }, 10s));  // two records and the marker of the abort
    REQUIRE(produce(bench.brokers(), "rows", {{good(3)}}));
    holes += 3;
    ++counts.good;
    bench.train();
  }
  REQUIRE(produce(bench.brokers(), "rows", {{good(4)}, {good(5)}, {good(6), "", 1}}));

  const auto verified = bench.call({"ledger", "verify", "--rows", "--json"});
  INFO(verified.errors);
  INFO(verified.output);
  REQUIRE(verified.status.code == 0);
  const Json all = Json::parse(last_line(verified.output));
  REQUIRE(all["partitions"].size() == 2);
  const Json& first = all["partitions"][0];
  CHECK(first["rows_trained"] == counts.good);
  CHECK(first["rows_dropped"] == Json{{"malformed", counts.malformed}, {"missing_field", counts.missing}});
  CHECK(first["rows_shared"] == counts.shared);
  CHECK(first["holes"] == holes);
  CHECK(first["waiting"] == 2);
  CHECK(first["start"] == Json::array({0, 0}));
  CHECK(is_chain(first));
  std::uint64_t trained = 0;
  for (const auto& round : first["rounds"]) trained += round["trained"].get<std::uint64_t>();
  CHECK(trained == counts.good);
  std::int64_t found_holes = 0;
  for (const auto& run : first["passed"])
    if (run["fate"] == "hole") found_holes += run["rows"].get<std::int64_t>();
  CHECK(found_holes == holes);
  const Json& second = all["partitions"][1];
  CHECK(second["rows_trained"] == 0);
  CHECK(second["rows_dropped"] == Json{{"malformed", 100}});
  CHECK(second["next"] == Json::array({100, 0}));
  CHECK(second["waiting"] == 1);
  CHECK(is_chain(second));

  // Kafka's own tool and the ledger show the same values.
  const auto end = watermarks(bench.brokers(), "rows", 0).value().second;
  CHECK(group_offsets(bench, 0) ==
        std::vector{std::to_string(end - 2), std::to_string(end), std::string("2")});
  CHECK(first["next"] == Json::array({end - 2, 0}));
  CHECK(group_offsets(bench, 1) == std::vector<std::string>{"100", "101", "1"});

  const auto shown = bench.call({"ledger", "show", "--offline"});
  INFO(shown.output);
  CHECK(shown.status.code == 0);
  CHECK(contains(shown.output,
                 "rows:1  offsets 0 to 100: 0 trained, 100 dropped (100 malformed), 0 holes  balanced"));
  CHECK(first["rounds_unknown"].empty());
  std::filesystem::remove(bench.folder.path() / "data" / "decisions.jsonl");
  const auto forgotten = bench.call({"ledger", "show", "--offline", "--rows"});
  INFO(forgotten.output);
  CHECK(contains(forgotten.output, "  0 to 100: in rounds missing from this device's decision logs"));
  CHECK(contains(forgotten.output, "malformed"));
}

TEST_CASE(
    "Ledger: a log that does not hold what the books say does not balance, and the partition is named") {
  const Bench bench;
  std::vector<TestRecord> records;
  records.reserve(40);
  for (int i = 0; i < 40; ++i) records.push_back({good(static_cast<std::size_t>(i)), "", i % 2});
  REQUIRE(produce(bench.brokers(), "rows", records));
  bench.train();
  CHECK(bench.call({"ledger", "verify"}).status.code == 0);
  const auto unknown =
      bench.call({"ledger", "verify", "--topic", "row"});  // a check of nothing must not pass
  CHECK(unknown.status.code == 1);
  CHECK(contains(unknown.errors, "error: the ledger contains no partition of topic \"row\"\n"));
  // Another broker with a shorter topic of the same name.
  const Bench other;
  auto command = bench.command({"ledger", "verify"});
  *(std::ranges::find(command, "--brokers") + 1) = other.brokers();
  ProcessOptions options;
  options.command = command;
  const auto refused = run(options, 30s);
  INFO(refused.output);
  CHECK(refused.status.code == 1);
  CHECK(contains(refused.output,
                 "NOT BALANCED: the log ends at offset 0, before the next offset 20; check whether the topic "
                 "was recreated"));
  const auto strange = bench.call({"ledger", "verify", "--offline", "--set", "job.name=other"});
  CHECK(strange.status.code == 1);
  CHECK(contains(strange.errors, "its job is 'books', not 'other'"));
  const auto renamed =
      bench.call({"ledger", "verify", "--offline", "--set", "source.topics=[\"a\",\"rows\"]"});
  CHECK(renamed.status.code == 1);
  CHECK(contains(renamed.errors, "its topics are rows, not a, rows"));
  const auto none = other.call({"ledger", "verify"});
  CHECK(none.status.code == 1);
  CHECK(contains(none.errors, "no checkpoint in"));
}
