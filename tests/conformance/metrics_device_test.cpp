// Compares a device's metrics about itself, its machine and its Kafka client with values computed by hand.
#include <librdkafka/rdkafka.h>

#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "runtime/node/memory_plan.h"
#include "runtime/process/log.h"
#include "runtime/status/board_watch.h"
#include "runtime/status/metrics/build_info.h"
#include "runtime/status/metrics/prometheus_sink.h"
#include "stream/kafka/notices.h"
#include "tests/conformance/metrics_typed.h"
#include "tests/support/kafka_source_fixture.h"
#include "tests/support/places.h"
#include "tests/support/sensor_tree.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

/// A time between the start of the test and now, in seconds since 1970.
struct Today {
  double began = static_cast<double>(unix_time_ms()) / 1000;
  [[nodiscard]] bool has(double seconds) const {
    return seconds >= began - 0.001 && seconds <= static_cast<double>(unix_time_ms()) / 1000;
  }
};

}  // namespace

TEST_CASE("Measured: what a device says of itself") {
  const auto sink = make_prometheus_sink();
  publish_build_info(*sink, {.version = "1.2.3",
                             .revision = "abc",
                             .torch = "2.15.0",
                             .librdkafka = "2.0.2",
                             .cuda = "none",
                             .arch = "mips"});
  publish_device_info(*sink, "a", "lenet5", "mnist");
  publish_group_sizes(*sink, {2, 8, 16});
  MemoryPlan plan;
  plan.parts = {{.name = "row_buffer", .bytes = 4096, .key = "buffer.rows"},
                {.name = "batch", .bytes = 512, .key = "batch.max"}};
  plan.cap = 8192;
  plan.publish(*sink);
  auto log = make_logger("error", "logfmt", *sink);
  REQUIRE(log);
  log.value()->write(Level::warn, "below the level: neither written nor counted");
  log.value()->write(Level::error, "planted by a test");
  log.value()->write(Level::error, "planted by a test, too");
  check_sheet(read_sheet(sink->scrape()), read_typed("device"));
}

TEST_CASE("Measured: the machine's sensors") {
  VirtualClock clock;
  const auto sink = make_prometheus_sink();
  TempDir root;
  const auto look_twice = [&](const char* tree, const std::function<void()>& meanwhile) {
    plant_sensors(root, tree);
    BoardWatch watch({clock, devices::Sensors(root.path()), *sink});
    watch.step();
    clock.advance_by(std::chrono::seconds(2));
    meanwhile();
    watch.step();
    return read_sheet(sink->scrape());
  };
  SUBCASE("of a Jetson") {
    const auto sheet = look_twice("orin-jetpack6", [&] {
      root.write("sys/class/hwmon/hwmon3/oc1_event_cnt", "5\n");  // was 2
    });
    check_sheet(sheet, read_typed("jetson"));
  }
  SUBCASE("of a desktop") {
    const auto sheet = look_twice("plain-x86", [&] {
      root.write("sys/class/powercap/intel-rapl:0/energy_uj", "200000000\n");  // was 123456789
      root.write("sys/devices/system/cpu/cpu1/thermal_throttle/package_throttle_count", "7\n");  // was 5
    });
    check_sheet(sheet, read_typed("desktop"));
  }
}

TEST_CASE("Measured: a Kafka client's own numbers") {
  const auto sink = make_prometheus_sink();
  auto json = nlohmann::json::parse(read_file(source_path("tests/support/statistics/two_brokers.json")));
  json["brokers"]["127.0.0.1:40915/2"]["throttle"]["avg"] = 250;
  stream::kafka::StatisticsMeters meters(*sink);
  CHECK(meters.show(json.dump()) == 2);
  check_sheet(read_sheet(sink->scrape()), read_typed("statistics"));
}

TEST_CASE("Measured: a Kafka client's complaints and commits") {
  const Today today;
  const auto sink = make_prometheus_sink();
  stream::kafka::Notices notices("kafka:9092", *sink);
  notices.client_error(RD_KAFKA_RESP_ERR__TRANSPORT, "refused");
  notices.client_error(RD_KAFKA_RESP_ERR__AUTHENTICATION, "who are you");
  notices.record_error(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, "not for you");
  for (int i = 0; i < 3; ++i) notices.record_error(RD_KAFKA_RESP_ERR__BAD_MSG, "bad");
  for (int i = 0; i < 4; ++i) notices.committed(RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT);
  for (int i = 0; i < 5; ++i) notices.client_error(RD_KAFKA_RESP_ERR__FATAL, "broken");
  for (int i = 0; i < 6; ++i) notices.committed(RD_KAFKA_RESP_ERR_NO_ERROR);
  notices.committed(RD_KAFKA_RESP_ERR__NO_OFFSET);  // nothing to commit: neither result
  const auto sheet = read_sheet(sink->scrape());
  check_sheet(sheet, read_typed("complaints"));
  CHECK(today.has(sheet.at("kafka_last_commit_timestamp_seconds")));
}

TEST_CASE("Measured: a reader of two partitions") {
  const auto broker = start_broker({{"t", 2}});
  REQUIRE(testing::produce(broker->bootstrap_servers(), "t", numbered(0, 10)));
  auto others = numbered(10, 4, 5);
  for (auto& record : others) record.partition = 1;
  REQUIRE(testing::produce(broker->bootstrap_servers(), "t", others));
  auto config = config_for(broker->bootstrap_servers(), "t");
  config.partitions = {{"t", {0, 0}}, {"t", {0, 1}}};
  const auto sink = make_prometheus_sink();
  const RealClock clock;
  auto opened = config.open(clock, *sink);
  REQUIRE(opened);
  auto& source = *opened.value();
  std::size_t got = 0;
  const auto read_more = [&] {
    if (const auto records = source.poll(14 - got, 20ms)) got += records.value().size();
    return got == 14;
  };
  REQUIRE(wait_until(read_more, 10s));
  const std::vector<NextOffset> committed{{{0, 0}, 7}};
  REQUIRE(source.commit(committed));
  const std::vector<NextOffset> beyond{{{0, 1}, 100}};
  const auto series = [&](const std::string& name) { return read_sheet(sink->scrape())[name]; };
  const auto polled = [&](const std::string& name, double value) {
    return wait_until([&] { return static_cast<void>(source.poll(1, 20ms)), series(name) == value; }, 10s);
  };
  REQUIRE(polled("kafka_consumer_lag_records{partition=\"0\",topic=\"t\"}", 3));
  REQUIRE(testing::seek(source, beyond));
  REQUIRE(polled("kafka_stopped_partition{partition=\"1\",topic=\"t\"}", 1));
  source.keep_alive();
  auto sheet = read_sheet(sink->scrape());
  // The client's statistics have no fixed time: read_typed("statistics") covers them.
  std::erase_if(sheet, [](const auto& one) {
    return names_in(read_typed("statistics")).contains(one.first.substr(0, one.first.find('{')));
  });
  check_sheet(sheet, read_typed("reader"));
}
