#include <doctest/doctest.h>

#include "core/clock.h"
#include "stream/dataset.h"
#include "stream/embedded_broker.h"
#include "stream/open.h"
#include "tests/conformance/record_source_suite.h"
#include "tests/support/kafka_source_world.h"
#include "tests/support/temp_dir.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

/// A world whose clock the test advances. produce(n) advances it by the time in which n records come due.
struct ClockedWorld : SourceWorld {
  VirtualClock clock;
  TempDir directory;
};

constexpr double rate = 1000;

std::unique_ptr<SourceWorld> clocked(const std::string& name) {
  auto world = std::make_unique<ClockedWorld>();
  world->name = name;
  world->partitions = {{0, 2}, {1, 0}};
  world->poll_wait = Duration(0);
  auto* w = world.get();
  world->produce = [w](int n) { w->clock.advance_by(from_seconds(n / rate)); };
  world->pass = [w] { w->clock.advance_by(300ms); };
  return world;
}

/// A source counts its rate from its opening. A source opened late finds all records present.
void catch_up(ClockedWorld& world, TimePoint opened) {
  if (opened > TimePoint{}) world.clock.advance_by(300ms);
}

std::unique_ptr<SourceWorld> file_world() {
  auto made = clocked("file");
  auto* world = static_cast<ClockedWorld*>(made.get());
  std::string text;
  for (int i = 0; i < 300; ++i) text += std::to_string(i) + "," + std::to_string(i * i) + "\n";
  const std::string path = world->directory.write("rows.csv", text).string();
  world->ends = true;
  world->open = [world, path](const Offsets& resume) {
    stream::FileSourceConfig config;
    config.path = path;
    config.format = "csv";
    config.rows_per_second = rate;
    config.seed = 0;  // unchanged
    const TimePoint opened = world->clock.now();
    auto source = stream::open_file_source(config, world->clock);
    REQUIRE_MESSAGE(source, source.error().message);
    auto read = reading(std::move(source).value(), world->partitions, resume);
    catch_up(*world, opened);
    return read;
  };
  world->value = [](PartitionId, std::int64_t i) { return std::to_string(i) + "," + std::to_string(i * i); };
  return made;
}

std::unique_ptr<SourceWorld> synthetic_world() {
  auto made = clocked("synthetic");
  auto* world = static_cast<ClockedWorld*>(made.get());
  const auto generate = [partitions = world->partitions](const Clock& clock, double rows_per_second) {
    stream::SyntheticSourceConfig config;
    config.columns = 3;
    config.classes = 4;
    config.rows_per_second = [rows_per_second, end = clock.now() + 300ms](TimePoint t) {
      return t < end ? rows_per_second : 0;
    };
    return reading(std::move(stream::open_synthetic_source(config, clock)).value(), partitions);
  };
  world->open = [world, generate](const Offsets& resume) {
    const TimePoint opened = world->clock.now();
    auto source = generate(world->clock, rate);
    std::vector<NextOffset> positions;
    for (const auto& [id, offset] : resume) positions.push_back({id, offset});
    catch_up(*world, opened);
    REQUIRE(seek(*source, positions));
    return source;
  };
  // Reads this record from a second source with the same seed.
  world->value = [generate](PartitionId id, std::int64_t offset) {
    VirtualClock clock;
    auto twin = generate(clock, 10 * rate);
    clock.advance_by(300ms);
    const NextOffset position[] = {{id, offset}};
    REQUIRE(seek(*twin, position));
    const auto records = twin->poll(2, Duration(0));
    REQUIRE(records);
    for (const auto& record : records.value())
      if (record.partition == id && record.offset == offset)
        return std::string(reinterpret_cast<const char*>(record.value.data()), record.value.size());
    return std::string("nothing");
  };
  return made;
}

std::unique_ptr<SourceWorld> scripted_world() {
  auto made = clocked("scripted");
  auto* world = static_cast<ClockedWorld*>(made.get());
  world->ends = true;
  world->value = [](PartitionId id, std::int64_t i) {
    return std::to_string(id.topic) + ":" + std::to_string(i);
  };
  world->open = [world](const Offsets& resume) {
    std::vector<stream::ScriptedRecord> script;
    for (const auto id : world->partitions)
      for (int i = 0; i < 300; ++i) {
        const std::string text = world->value(id, i);
        const auto bytes = std::as_bytes(std::span(text));
        script.push_back(
            {TimePoint(from_seconds((i + 1) / rate)), id, i, {bytes.begin(), bytes.end()}, false});
      }
    return reading(stream::open_scripted_source(world->partitions, script, world->clock), world->partitions,
                   resume);
  };
  return made;
}

}  // namespace

TEST_CASE("Record sources: a file keeps what every source promises") {
  check_record_source(file_world);
}
TEST_CASE("Record sources: a generator keeps what every source promises") {
  check_record_source(synthetic_world);
}
TEST_CASE("Record sources: a script keeps what every source promises") {
  check_record_source(scripted_world);
}

TEST_CASE("Record sources: Kafka, embedded, keeps what every source promises") {
  auto broker = stream::EmbeddedBroker::start(
      {{"t0", 2}, {"t1", 2}, {"t2", 2}, {"t3", 2}, {"t4", 2}, {"t5", 2}, {"t6", 2}});
  REQUIRE_MESSAGE(broker, broker.error().message);
  int world = 0;
  check_record_source([&] {
    return kafka_source_world("embedded Kafka", broker.value()->bootstrap_servers(),
                              "t" + std::to_string(world++));
  });
}
