#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "core/clock.h"
#include "stream/embedded_broker.h"
#include "stream/feeder.h"
#include "stream/open.h"
#include "tests/support/assigned.h"
#include "tests/support/kafka_client.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::stream;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

/// CSV rows "number,padding".
std::unique_ptr<Dataset> numbered_rows(const TempDir& directory, int count, std::size_t padding = 1) {
  std::string text;
  for (int i = 0; i < count; ++i) text += std::to_string(i) + "," + std::string(padding, '7') + "\n";
  auto data =
      open_dataset(directory.write("rows" + std::to_string(count) + ".csv", text).string(), Split::train);
  REQUIRE_MESSAGE(data, data.error().message);
  return std::move(data).value();
}

/// Advances by 5 ms at each read, so that due records do not depend on the machine's load.
class SteppingClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override { return TimePoint(5ms * looks_++); }

 private:
  mutable int looks_ = 0;
};

FeederConfig config_for(const EmbeddedBroker& broker, std::vector<double> rates) {
  FeederConfig config;
  config.properties = {{"bootstrap.servers", broker.bootstrap_servers()}};
  config.topic = "t";
  config.rates = std::move(rates);
  return config;
}

FeedProgress play(const Dataset& data, const FeederConfig& config, const std::function<bool()>& stop = {}) {
  const RealClock clock;
  const auto fed = feed(data, config, clock, {}, stop);
  REQUIRE_MESSAGE(fed, fed.error().message);
  return fed.value();
}

std::vector<std::string> values_of(const EmbeddedBroker& broker, int partition, std::size_t count) {
  const auto records = consume(broker.bootstrap_servers(), "t", partition, 0, count, 10s);
  REQUIRE_MESSAGE(records, records.error().message);
  std::vector<std::string> values;
  for (const auto& record : records.value()) values.push_back(record.value);
  return values;
}

std::unique_ptr<EmbeddedBroker> broker_with(int partitions) {
  auto broker = EmbeddedBroker::start({{"t", partitions}});
  REQUIRE_MESSAGE(broker, broker.error().message);
  return std::move(broker).value();
}

}  // namespace

TEST_CASE(
    "Feeder: the records of a partition keep their order when the broker refuses some of them at first") {
  constexpr int rows = 2000;
  const TempDir directory;
  const auto data = numbered_rows(directory, rows, 2000);
  const auto quiet = broker_with(1);
  const auto wanted = [&] {
    play(*data, config_for(*quiet, {1e6}));
    return values_of(*quiet, 0, rows);
  }();
  const auto broker = broker_with(1);
  broker->refuse_records(1);
  play(*data, config_for(*broker, {1e6}));
  CHECK(values_of(*broker, 0, rows) == wanted);
}

TEST_CASE("Feeder: the tests' own records keep their order, too") {
  constexpr int rows = 2000;
  std::vector<TestRecord> records(rows);
  std::vector<std::string> wanted;
  const std::string padding(2000, '7');  // so that they need several requests
  for (int i = 0; i < rows; ++i) wanted.push_back(records[i].value = std::to_string(i) + padding);
  const auto broker = broker_with(1);
  broker->refuse_records(1);
  const Status produced = produce(broker->bootstrap_servers(), "t", records);
  REQUIRE_MESSAGE(produced, produced.error().message);
  CHECK(values_of(*broker, 0, rows) == wanted);
}

TEST_CASE("Feeder: each partition gets its rate, also after the change, until the duration is over") {
  const TempDir directory;
  const auto data = numbered_rows(directory, 5000);
  const auto broker = broker_with(3);
  auto config = config_for(*broker, {300, 100, 0});
  config.second_rates = {100, 0, 200};
  config.change_at = 1s;
  config.duration = 2s;
  std::vector<FeedProgress> seen;
  const SteppingClock clock;
  const auto fed = feed(*data, config, clock, [&](const FeedProgress& p) { seen.push_back(p); }, {});
  REQUIRE_MESSAGE(fed, fed.error().message);
  CHECK(fed.value().per_partition == std::vector<std::uint64_t>{400, 100, 200});
  CHECK(fed.value().records == 700);
  CHECK(fed.value().seconds == doctest::Approx(2).epsilon(0.01));
  REQUIRE(seen.size() == 9);  // every 250 ms, and at the end
  // Evenly: at each report each partition has exactly the records due until then.
  for (std::size_t i = 0; i < seen.size(); ++i) {
    CAPTURE(i);
    const double t = std::min(seen[i].seconds, 2.0);
    CHECK(t == doctest::Approx(i == 8 ? 2 : 0.25 * static_cast<double>(i)).epsilon(0.05));
    CHECK(seen[i].fraction == doctest::Approx(t / 2));
    const double due[] = {300 * std::min(t, 1.0) + 100 * std::max(t - 1, 0.0), 100 * std::min(t, 1.0),
                          200 * std::max(t - 1, 0.0)};
    for (std::size_t p = 0; p < 3; ++p)
      CHECK(std::abs(static_cast<double>(seen[i].per_partition[p]) - due[p]) <= 1);
  }
  // Each record has this machine's time.
  const auto records = consume(broker->bootstrap_servers(), "t", 0, 0, 400, 10s);
  REQUIRE(records);
  CHECK(records.value()[0].timestamp_ms == doctest::Approx(unix_time_ms()).epsilon(1e-6));
}

TEST_CASE(
    "Feeder: the same seed plays the same order on every partition, whatever the speed; the end of the data "
    "ends it") {
  const TempDir directory;
  const auto data = numbered_rows(directory, 300);
  std::vector<std::vector<std::string>> orders;
  for (const auto& [seed, rate] : {std::pair{7U, 4000.0}, {7U, 900.0}, {8U, 4000.0}}) {
    const auto broker = broker_with(2);
    auto config = config_for(*broker, {2 * rate, rate});
    config.seed = seed;
    const auto fed = play(*data, config);
    CHECK(fed.records == 300);
    CHECK(fed.fraction == 1);
    CHECK(fed.per_partition == std::vector<std::uint64_t>{200, 100});
    orders.push_back(values_of(*broker, 0, 200));
    const auto other = values_of(*broker, 1, 100);
    orders.back().insert(orders.back().end(), other.begin(), other.end());
    CHECK(std::set(orders.back().begin(), orders.back().end()).size() == 300);
  }
  CHECK(orders[0] == orders[1]);
  CHECK(orders[0] != orders[2]);
}

TEST_CASE("Feeder: without an end in sight a partition that falls silent later plays until then") {
  const TempDir directory;
  const auto data = numbered_rows(directory, 200);
  const auto broker = broker_with(2);
  auto config = config_for(*broker, {200, 200});
  config.second_rates = {200, 0};
  config.change_at = 1s;
  config.repeat = true;
  int looks = 0;
  const SteppingClock clock;
  const auto fed = feed(*data, config, clock, {}, [&] { return ++looks > 400; });
  REQUIRE_MESSAGE(fed, fed.error().message);
  CHECK(fed.value().per_partition == std::vector<std::uint64_t>{400, 200});
}

TEST_CASE("Feeder: repeats until it is stopped") {
  const TempDir directory;
  const auto data = numbered_rows(directory, 20);
  const auto broker = broker_with(1);
  auto config = config_for(*broker, {2000});
  config.repeat = true;
  int asked = 0;
  const auto fed = play(*data, config, [&] { return ++asked > 100; });
  CHECK(fed.records > 100);
  CHECK(fed.fraction == 0);
  const auto values = values_of(*broker, 0, 60);
  for (std::ptrdiff_t epoch = 0; epoch < 3; ++epoch)
    CHECK(std::set(values.begin() + 20 * epoch, values.begin() + 20 * (epoch + 1)).size() == 20);
}

TEST_CASE(
    "Feeder: paced by commits, a slow reader on the embedded broker loses nothing of more than it can keep") {
  const TempDir directory;
  constexpr int rows = 900;  // 18 MB for a partition that retains 5
  const auto data = numbered_rows(directory, rows, 20'000);
  const auto broker = broker_with(1);
  auto config = config_for(*broker, {3000});
  config.pace_by_commits = true;
  config.pace_group = "rivulet.slow";
  std::atomic<bool> done{false};
  FeedProgress fed;
  std::thread feeder([&] {
    fed = play(*data, config);
    done = true;
  });
  RealClock clock;
  NullMetrics metrics;
  testing::KafkaReading reader;
  reader.properties = config.properties;
  reader.group_id = config.pace_group;
  reader.partitions = {{"t", {0, 0}}};
  auto source = std::move(reader.open(clock, metrics)).value();
  std::set<std::string> seen;
  std::int64_t next = 0;
  TimePoint next_commit = clock.now() + 700ms;  // no commits at first
  wait_until(
      [&] {
        const auto records = source->poll(20, 10ms);
        REQUIRE_MESSAGE(records, records.error().message);
        for (const auto& record : records.value()) {
          REQUIRE(record.offset == next++);
          seen.emplace(reinterpret_cast<const char*>(record.value.data()), record.value.size());
        }
        if (clock.now() < next_commit) return false;
        next_commit = clock.now() + 100ms;
        const NextOffset position[] = {{{0, 0}, next}};
        REQUIRE(source->commit(position));
        return next == rows;
      },
      30s);
  CHECK(seen.size() == rows);
  wait_until([&] { return done.load(); }, 10s);
  feeder.join();
  CHECK(fed.records == rows);
  CHECK(fed.held_back > 0);
  // Shows that the pace mattered: the first records are deleted.
  const auto ends = watermarks(broker->bootstrap_servers(), "t", 0);
  REQUIRE(ends);
  CHECK(ends.value().first > 0);
}

TEST_CASE("Feeder: without a reader it stays within its window and says so") {
  const TempDir directory;
  const auto data = numbered_rows(directory, 2000, 10'000);
  const auto broker = broker_with(2);
  auto config = config_for(*broker, {2000, 2000});
  config.pace_by_commits = true;
  config.pace_group = "rivulet.nobody";
  config.window_bytes = 1'000'000;
  config.duration = 1s;
  const auto fed = play(*data, config);
  for (const auto records : fed.per_partition) {
    CHECK(records > 90);
    CHECK(records < 100);
  }
  CHECK(fed.held_back == 2);
}

TEST_CASE("Feeder: what is wrong is said before the first record") {
  const TempDir directory;
  const auto data = numbered_rows(directory, 10);
  const auto broker = broker_with(3);
  const RealClock clock;
  const auto refused = [&](const FeederConfig& config) {
    const auto fed = feed(*data, config, clock, {}, {});
    REQUIRE_FALSE(fed);
    return fed.error();
  };
  CHECK(refused(config_for(*broker, {1, 2})).message ==
        "2 rates for 3 partitions: expected one for all, or one per partition");
  CHECK(refused(config_for(*broker, {-1})).code == ErrorCode::usage);
  auto config = config_for(*broker, {1});
  config.partitions = 5;
  CHECK(refused(config).message == "topic \"t\" has 3 partitions, 5 were requested");
  config = config_for(*broker, {1});
  config.labels_per_device = 2;
  CHECK(refused(config).code == ErrorCode::usage);
  config = config_for(*broker, {1});
  config.topic = "nowhere";
  CHECK(refused(config).code == ErrorCode::unavailable);
  config = config_for(*broker, {1});
  config.properties.emplace_back("linger.ms", "never");
  CHECK(refused(config).code == ErrorCode::invalid_config);
}

TEST_CASE("Feeder: records that cannot be delivered are an error that names the partition") {
  const TempDir directory;
  const auto data = numbered_rows(directory, 1000);
  const auto broker = broker_with(1);
  auto config = config_for(*broker, {200});
  config.properties.emplace_back("message.timeout.ms", "1000");
  const RealClock clock;
  int calls = 0;
  const auto fed = feed(*data, config, clock,
                        [&](const FeedProgress&) {
                          if (++calls == 2) broker->set_down(true);
                        },
                        {});
  REQUIRE_FALSE(fed);
  CHECK(fed.error().code == ErrorCode::io);
  CAPTURE(fed.error().message);
  CHECK(fed.error().message.find("topic \"t\", partition 0: a record of ") == 0);
  CHECK(fed.error().message.find("timed out") != std::string::npos);
}

TEST_CASE("Feeder: partitions that want more than there is room for all get their part of it") {
  const TempDir directory;
  const auto data = numbered_rows(directory, 100);
  const auto broker = broker_with(3);
  auto config = config_for(*broker, {1e6});
  config.properties.emplace_back("queue.buffering.max.messages", "30");
  config.repeat = true;
  config.duration = 60s;
  const RealClock clock;
  std::uint64_t records = 0;
  const auto fed = feed(
      *data, config, clock, [&](const FeedProgress& now) { records = now.records; },
      [&] { return records > 1000; });
  REQUIRE_MESSAGE(fed, fed.error().message);
  const auto& sent = fed.value().per_partition;
  const auto [least, most] = std::minmax_element(sent.begin(), sent.end());
  CHECK(records > 1000);
  CHECK(3 * *least > *most);
}
