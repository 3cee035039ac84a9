// Bad rows of every kind pass through Ingest: dropped, counted by reason, and the loop continues.
#include "runtime/ingest/ingest.h"

#include <doctest/doctest.h>

#include <cstring>

#include "buffer/batch.h"
#include "buffer/ledger.h"
#include "runtime/status/metrics/prometheus_sink.h"
#include "stream/open.h"
#include "tests/support/decode_settings.h"
#include "tests/support/wrapped_source.h"

using namespace rivulet;

namespace {

struct NoWake final : Wake {
  void notify() noexcept override { ++calls; }
  int calls = 0;
};

std::vector<std::byte> bytes(std::string_view text) {
  const auto* p = reinterpret_cast<const std::byte*>(text.data());
  return {p, p + text.size()};
}

std::vector<std::byte> floats(std::vector<float> values) {
  std::vector<std::byte> out(values.size() * sizeof(float));
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

/// An Ingest over a script of record values, all due immediately.
struct Bench {
  Bench(const stream::DecodeConfig& config, std::vector<std::vector<std::byte>> values,
        std::size_t slots = 64, bool stop_on_bad_row = false) {
    const PartitionId partition{0, 0};
    std::vector<stream::ScriptedRecord> script;
    for (std::size_t i = 0; i < values.size(); ++i)
      script.push_back({TimePoint{}, partition, static_cast<std::int64_t>(i), values[i], values[i].empty()});
    source = stream::open_scripted_source({partition}, std::move(script), clock);
    for (const auto* entry : stream::builtin_decoders())
      if (entry->name == config.format)
        decoder = std::move(entry->make(testing::with_decode_defaults(config))).value();
    rows = std::make_unique<buffer::RowBuffer>(slots, decoder->shape());
    assignments.publish({{partition, std::nullopt}});
    reading.poll_wait = {};
    reading.format = config.format;
    reading.stop_on_bad_row = stop_on_bad_row;
    begin();
  }
  void begin() {
    ingest = std::make_unique<runtime::Ingest>(
        reading, runtime::Ingest::Parts{clock, *source, *decoder, *rows, ledger, commits, assignments, gauge,
                                        status, metrics, *log, wake});
  }
  [[nodiscard]] std::uint64_t dropped(DropReason reason) const { return status.rows_dropped[reason]; }
  /// Takes the waiting rows with all skipped ranges around them.
  buffer::Account account(std::uint32_t generation = 0, const buffer::Cursors& stands = {}) {
    std::vector<buffer::SlotIndex> slots;
    rows->take(1000, slots);
    std::vector<RowTag> tags;
    for (const auto slot : slots) tags.push_back(rows->tag(slot));
    rows->release(slots);
    auto made = ledger.account(tags, stands, generation);
    REQUIRE_MESSAGE(made, made.error().message);
    return std::move(made).value();
  }
  void steps(int n) {
    for (int i = 0; i < n; ++i) static_cast<void>(ingest->step());
  }

  VirtualClock clock;
  runtime::IngestConfig reading;
  std::unique_ptr<stream::RecordSource> source;
  std::unique_ptr<stream::Decoder> decoder;
  std::unique_ptr<buffer::RowBuffer> rows;
  runtime::CommittableOffsets commits;
  buffer::Ledger ledger;
  runtime::AssignmentSlot assignments;
  runtime::StreamGauge gauge;
  runtime::NodeStatus status;
  NullMetrics metrics;
  std::unique_ptr<runtime::Logger> log = runtime::make_null_logger();
  NoWake wake;
  std::unique_ptr<runtime::Ingest> ingest;
};

stream::DecodeConfig raw() {
  stream::DecodeConfig c;
  c.format = "raw";
  testing::set_raw(c.settings, "f32", "f32");
  c.shape = {2};
  c.classes = 3;
  return c;
}

}  // namespace

TEST_CASE(
    "Ingest: malformed rows of raw, csv and json are dropped by reason and good ones around them pass") {
  SUBCASE("raw") {
    const float nan = __builtin_nanf("");
    Bench b(raw(), {floats({1, 0.5F, 0.5F}),
                    floats({1, nan, 0}),
                    {},
                    floats({7, 0, 0}),
                    floats({1, 0}),
                    floats({2, 1, 1})});
    b.steps(5);
    CHECK(b.rows->waiting() == 2);
    CHECK(b.dropped(DropReason::nonfinite_value) == 1);
    CHECK(b.dropped(DropReason::tombstone) == 1);
    CHECK(b.dropped(DropReason::bad_label) == 1);
    CHECK(b.dropped(DropReason::wrong_shape) == 1);
  }
  SUBCASE("csv") {
    auto c = raw();
    c.format = "csv";
    c.features = {"0", "1"};
    c.target = "2";
    c.shape = {};
    Bench b(c, {bytes("1,2,0"), bytes("1,x,0"), bytes("1,nan,0"), bytes("1,2,9"), bytes("3,4,2")});
    b.steps(5);
    CHECK(b.rows->waiting() == 2);
    CHECK(b.dropped(DropReason::bad_label) == 1);
    std::uint64_t all = 0;
    b.status.rows_dropped.each([&](std::string_view, std::uint64_t rows) { all += rows; });
    CHECK(all == 3);
  }
  SUBCASE("json") {
    auto c = raw();
    c.format = "json";
    c.features = {"a", "b"};
    c.target = "y";
    c.shape = {};
    Bench b(c, {bytes(R"({"a":1,"b":2,"y":0})"), bytes(R"({"a":1,"b":)"), bytes(R"({"a":1,"y":0})"),
                bytes(R"({"a":"x","b":2,"y":0})"), bytes(R"({"a":1,"b":2,"y":-1})"),
                bytes(R"({"a":5,"b":6,"y":2})")});
    b.steps(5);
    CHECK(b.rows->waiting() == 2);
    CHECK(b.dropped(DropReason::malformed) == 1);
    CHECK(b.dropped(DropReason::missing_field) == 1);
    CHECK(b.dropped(DropReason::wrong_type) == 1);
    CHECK(b.dropped(DropReason::bad_label) == 1);
  }
}

TEST_CASE("Ingest: rows of another kind are in the books, stop nothing and are in no log") {
  auto c = raw();
  c.format = "json";
  c.features = {"a", "b"};
  c.target = "y";
  c.shape = {};
  c.where = "k = r";
  Bench b(c,
          {bytes(R"({"k":"r","a":1,"b":2,"y":0})"), bytes(R"({"k":"x"})"),
           bytes(R"({"k":"r","a":3,"b":4,"y":1})")},
          64, true);
  b.steps(5);
  CHECK_FALSE(b.ingest->failure());
  CHECK(b.dropped(DropReason::filtered) == 1);
  const auto account = b.account();
  CHECK(account.intervals == std::vector<RowInterval>{{{0, 0}, {0, 0}, {3, 0}, 2, 1, 0, 0}});
  CHECK(account.runs == std::vector<SkippedRange>{
                            {{0, 0}, {1, 0}, {2, 0}, 1, static_cast<std::uint32_t>(DropReason::filtered)}});
}

TEST_CASE("Ingest: values that are missing are counted by feature, numbers that lose are told once") {
  auto c = raw();
  c.format = "csv";
  c.features = {"0", "1"};
  c.target = "2";
  c.shape = {};
  c.normalizes = true;
  c.fill = {stream::Fill::Kind::mean};
  std::vector<std::vector<std::byte>> lines;
  for (int i = 0; i < 60; ++i) {
    const std::string big = i % 3 == 0 ? "" : std::to_string(1'000'000'000 + i);
    lines.push_back(bytes(big + "," + std::to_string(i) + ",1"));
  }
  Bench b(c, lines);
  const auto metrics = runtime::make_prometheus_sink();
  std::vector<std::string> said;
  struct Ear final : runtime::Logger {
    explicit Ear(std::vector<std::string>& heard) : all(heard) {}
    void write(runtime::Level level, std::string_view message, const runtime::Fields&) override {
      if (level == runtime::Level::warn) all.emplace_back(message);
    }
    std::vector<std::string>& all;
  } ear(said);
  runtime::Ingest ingest(b.reading, {b.clock, *b.source, *b.decoder, *b.rows, b.ledger, b.commits,
                                     b.assignments, b.gauge, b.status, *metrics, ear, b.wake});
  for (int i = 0; i < 5; ++i) static_cast<void>(ingest.step());
  CHECK(b.rows->waiting() == 60);
  const std::string page = metrics->scrape();
  CHECK(page.find("rivulet_feature_missing_total{feature=\"0\"} 20\n") != std::string::npos);
  CHECK(page.find("rivulet_feature_missing_total{feature=\"1\"} 0\n") != std::string::npos);
  REQUIRE(said.size() == 1);
  CHECK(said[0].find("feature \"0\" ranges from 1000000001 to 1000000059: 32 bits lose ") == 0);
  CHECK(b.decoder->narrowing().empty());
}

TEST_CASE("Ingest: dropped rows are in the books before, between and behind good ones, and without any") {
  Bench b(raw(), {floats({9, 0, 0}), floats({9, 0, 0}), floats({1, 0, 0}), floats({1, 0}), floats({2, 0, 0}),
                  floats({9, 0, 0})});
  b.steps(3);
  const auto a = b.account();
  REQUIRE(a.intervals.size() == 1);
  CHECK(a.intervals[0] == RowInterval{{0, 0}, {0, 0}, {6, 0}, 2, 4, 0, 0});
  const auto bad_label = static_cast<std::uint32_t>(DropReason::bad_label);
  const auto wrong_shape = static_cast<std::uint32_t>(DropReason::wrong_shape);
  CHECK(a.runs == std::vector<SkippedRange>{{{0, 0}, {0, 0}, {2, 0}, 2, bad_label},
                                            {{0, 0}, {3, 0}, {4, 0}, 1, wrong_shape},
                                            {{0, 0}, {5, 0}, {6, 0}, 1, bad_label}});
  Bench only(raw(), {floats({9, 0, 0}), floats({9, 0, 0})});
  only.steps(3);
  CHECK(only.account().intervals == std::vector<RowInterval>{{{0, 0}, {0, 0}, {2, 0}, 0, 2, 0, 0}});
}

TEST_CASE("Ingest: drops within a record, at its end, and records whose rows share an offset add up") {
  Bench b(raw(), {floats({9, 0, 0, 1, 1, 1, 9, 0, 0, 2, 2, 2, 9, 0, 0, 9, 0, 0}), floats({1, 0, 0, 2, 0, 0}),
                  floats({9, 0, 0, 9, 0, 0})});
  b.steps(3);
  const auto a = b.account();
  REQUIRE(a.intervals.size() == 1);
  CHECK(a.intervals[0] == RowInterval{{0, 0}, {0, 0}, {3, 0}, 4, 6, 7, 0});
  CHECK(a.intervals[0].adds_up());
}

TEST_CASE("Ingest: offsets that hold nothing are holes") {
  const PartitionId partition{0, 0};
  std::vector<stream::ScriptedRecord> script;
  for (const std::int64_t offset : {5, 6, 10, 11})
    script.push_back({TimePoint{}, partition, offset, bytes(R"({"a":1,"b":2,"y":0})"), false});
  auto c = raw();
  c.format = "json";
  c.features = {"a", "b"};
  c.target = "y";
  c.shape = {};
  Bench b(c, {});
  b.source = stream::open_scripted_source({partition}, std::move(script), b.clock);
  runtime::IngestConfig reading;
  reading.poll_wait = {};
  runtime::Ingest ingest(reading, {b.clock, *b.source, *b.decoder, *b.rows, b.ledger, b.commits,
                                   b.assignments, b.gauge, b.status, b.metrics, *b.log, b.wake});
  for (int i = 0; i < 3; ++i) static_cast<void>(ingest.step());
  const auto a = b.account();
  REQUIRE(a.intervals.size() == 1);
  CHECK(a.intervals[0] == RowInterval{partition, {5, 0}, {12, 0}, 4, 0, 0, 3});
  CHECK(a.runs == std::vector<SkippedRange>{{partition, {7, 0}, {10, 0}, 3, fate_hole}});
}

TEST_CASE("Ingest: a record larger than the slab waits half decoded and loses nothing") {
  std::vector<float> many;
  for (int i = 0; i < 10; ++i) many.insert(many.end(), {1.0F, static_cast<float>(i), 0.0F});
  Bench b(raw(), {floats(many)}, 4);
  float expected = 0;
  for (int i = 0; i < 20 && expected < 10; ++i) {
    b.steps(1);
    std::vector<buffer::SlotIndex> slots;
    b.rows->take(3, slots);
    for (const auto slot : slots) {
      CHECK(b.rows->features(slot)[0] == expected);
      CHECK(b.rows->tag(slot).position.at == RowCursor{0, static_cast<std::uint32_t>(expected)});
      expected += 1;
    }
    b.rows->release(slots);
  }
  CHECK(expected == 10);
}

TEST_CASE("Ingest: a row that fills the slab is still known to be its record's last, so neighbours touch") {
  std::vector<std::vector<std::byte>> records(9, floats({1, 0, 0}));
  records[4] = floats({9, 0, 0});  // dropped, directly after a full slab
  Bench b(raw(), records, 4);
  buffer::Account all;
  buffer::Cursors stands;
  for (int i = 0; i < 20; ++i) {
    b.steps(2);
    const auto a = b.account(0, stands);
    REQUIRE(buffer::append(all, a));
    for (const auto& interval : a.intervals) {
      CHECK(interval.next.row == 0);
      stands[interval.partition] = interval.next;
    }
    b.ledger.prune(stands);
  }
  CHECK(all.intervals == std::vector<RowInterval>{{{0, 0}, {0, 0}, {9, 0}, 8, 1, 0, 0}});
}

TEST_CASE(
    "Ingest: while a record waits half decoded its source is served, and the time without room is counted") {
  struct Held final : testing::WrappedSource {
    using WrappedSource::WrappedSource;
    void keep_alive() override { ++holds; }
    int holds = 0;
  };
  Bench b(raw(), {floats({1, 0, 0, 1, 0, 0, 1, 0, 0})}, 2);
  Held source(std::move(b.source));
  const auto metrics = runtime::make_prometheus_sink();
  runtime::IngestConfig reading;
  reading.format = "raw";
  runtime::Ingest ingest(reading, {b.clock, source, *b.decoder, *b.rows, b.ledger, b.commits, b.assignments,
                                   b.gauge, b.status, *metrics, *b.log, b.wake});
  for (int i = 0; i < 5; ++i) {
    static_cast<void>(ingest.step());
    b.clock.advance_to(b.clock.now() + std::chrono::seconds(1));
  }
  CHECK(b.rows->waiting() == 2);
  CHECK(source.holds == 4);
  const std::string page = metrics->scrape();
  CHECK(page.find("rivulet_backpressure_seconds_total{stage=\"buffer\"} 3") != std::string::npos);
  CHECK(page.find("rivulet_decode_duration_seconds_count{format=\"raw\"} 1\n") != std::string::npos);
}

TEST_CASE(
    "Ingest: the time of decoding is that of a whole look at the source, and a full buffer is not a look") {
  /// Each of its steps takes a millisecond.
  struct Slow final : stream::Decoder {
    Slow(stream::Decoder& as, VirtualClock& moved) : of(as), clock(moved) {}
    [[nodiscard]] const RowShape& shape() const noexcept override { return of.shape(); }
    void begin(const Record& record) noexcept override { of.begin(record); }
    stream::Decoded next(RowSlot out) noexcept override {
      clock.advance_by(std::chrono::milliseconds(1));
      return of.next(out);
    }
    [[nodiscard]] std::string_view detail() const noexcept override { return of.detail(); }
    stream::Decoder& of;
    VirtualClock& clock;
  };
  Bench b(raw(), {floats({1, 0, 0}), floats({1, 0, 0, 1, 0, 0}), floats({9, 0, 0})}, 4);
  Slow decoder(*b.decoder, b.clock);
  const auto metrics = runtime::make_prometheus_sink();
  runtime::IngestConfig reading;
  reading.format = "raw";
  runtime::Ingest ingest(reading, {b.clock, *b.source, decoder, *b.rows, b.ledger, b.commits, b.assignments,
                                   b.gauge, b.status, *metrics, *b.log, b.wake});
  const auto says = [&](const std::string& line) {
    return metrics->scrape().find("rivulet_decode_duration_seconds_" + line + "\n") != std::string::npos;
  };
  CHECK(says("count{format=\"raw\"} 0"));
  for (int i = 0; i < 5; ++i) static_cast<void>(ingest.step());
  CHECK(b.rows->waiting() == 3);
  CHECK(says("count{format=\"raw\"} 1"));
  CHECK(says("sum{format=\"raw\"} 0.007"));
  CHECK(says("bucket{format=\"raw\",le=\"0.005\"} 0"));
  CHECK(says("bucket{format=\"raw\",le=\"0.01\"} 1"));
}

TEST_CASE("Ingest: a buffer that was full is filled again when a quarter is free, or a while later") {
  Bench b(raw(), std::vector<std::vector<std::byte>>(100, floats({1, 0, 0})), 16);
  b.steps(2);
  REQUIRE(b.rows->waiting() == 16);
  std::vector<buffer::SlotIndex> taken;
  const auto release = [&](std::size_t n) {
    taken.clear();
    b.rows->take(n, taken);
    b.rows->release(taken);
  };
  release(3);
  CHECK_FALSE(b.rows->is_worth_filling());
  b.steps(2);
  CHECK(b.rows->waiting() == 13);
  release(1);
  CHECK(b.rows->is_worth_filling());
  b.steps(2);
  CHECK(b.rows->waiting() == 16);
  release(1);
  b.steps(2);
  CHECK(b.rows->waiting() == 15);
  b.clock.advance_to(b.clock.now() + std::chrono::milliseconds(20));
  b.steps(2);
  CHECK(b.rows->waiting() == 16);
}

TEST_CASE("Ingest: decode.on_error = stop ends it with reason, partition and offset") {
  Bench b(raw(), {floats({1, 0, 0}), floats({9, 0, 0}), floats({1, 0, 0})}, 64, true);
  runtime::Turn turn;
  for (int i = 0; i < 3 && !turn.finished; ++i) turn = b.ingest->step();
  REQUIRE(turn.finished);
  REQUIRE(b.ingest->failure());
  CHECK(b.ingest->failure()->message.find("bad_label") != std::string::npos);
  CHECK(b.ingest->failure()->message.find("offset 1") != std::string::npos);
}

TEST_CASE("Ingest: the worker is woken by rows, not by silence") {
  Bench b(raw(), {floats({1, 0, 0})});
  b.steps(1);
  const int after_rows = b.wake.calls;
  CHECK(after_rows >= 1);
  b.steps(5);
  CHECK(b.wake.calls == after_rows);
}

TEST_CASE(
    "Ingest: sent back, it reads again from there, from the middle of a record, and tells the rows apart") {
  Bench b(raw(), {floats({0, 0, 0, 1, 1, 1, 2, 2, 2}), floats({0, 3, 3}), floats({1, 4, 4, 9, 0, 0, 2, 5, 5}),
                  floats({1, 6, 6})});
  b.steps(5);
  CHECK(b.rows->waiting() == 7);
  CHECK(b.dropped(DropReason::bad_label) == 1);
  const auto generation = b.assignments.publish({{{0, 0}, RowCursor{0, 2}}});
  b.rows->forget_before(generation);
  CHECK(b.rows->waiting() == 0);
  b.steps(5);
  std::vector<buffer::SlotIndex> slots;
  REQUIRE(b.rows->take(100, slots) == 5);
  const RowCursor expected[] = {{0, 2}, {1, 0}, {2, 0}, {2, 2}, {3, 0}};
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(b.rows->tag(slots[i]).position.at == expected[i]);
    CHECK(b.rows->tag(slots[i]).generation == generation);
  }
  CHECK(b.rows->tag(slots[0]).next == RowCursor{1, 0});
  b.rows->put_back(slots);
  CHECK(b.account(generation, {{{0, 0}, {0, 2}}}).intervals ==
        std::vector<RowInterval>{{{0, 0}, {0, 2}, {4, 0}, 5, 1, 2, 0}});
}

TEST_CASE("Ingest: rows dropped before the place it is sent to are not counted again") {
  Bench b(raw(), {floats({9, 0, 0, 9, 0, 0, 1, 1, 1})});
  const auto generation = b.assignments.publish({{{0, 0}, RowCursor{0, 1}}});
  b.rows->forget_before(generation);
  b.steps(3);
  CHECK(b.dropped(DropReason::bad_label) == 1);
  CHECK(b.account(generation, {{{0, 0}, {0, 1}}}).intervals ==
        std::vector<RowInterval>{{{0, 0}, {0, 1}, {1, 0}, 1, 1, 1, 0}});
}

TEST_CASE("Ingest: a partition without a cursor is read again from where this device began") {
  const PartitionId used{0, 0};
  const PartitionId fresh{0, 1};
  std::vector<stream::ScriptedRecord> script;
  for (std::int64_t i = 0; i < 4; ++i)
    for (const auto& partition : {used, fresh})
      script.push_back({TimePoint{}, partition, 100 + i, floats({1, 0, 0}), false});
  Bench b(raw(), {});
  b.source = stream::open_scripted_source({used, fresh}, std::move(script), b.clock);
  runtime::IngestConfig reading;
  reading.poll_wait = {};
  runtime::Ingest ingest(reading, {b.clock, *b.source, *b.decoder, *b.rows, b.ledger, b.commits,
                                   b.assignments, b.gauge, b.status, b.metrics, *b.log, b.wake});
  b.assignments.publish({{used, std::nullopt}, {fresh, std::nullopt}});
  for (int i = 0; i < 3; ++i) static_cast<void>(ingest.step());
  CHECK(b.rows->waiting() == 8);
  b.rows->forget_before(b.assignments.publish({{used, RowCursor{102, 0}}, {fresh, std::nullopt}}));
  for (int i = 0; i < 3; ++i) static_cast<void>(ingest.step());
  std::vector<buffer::SlotIndex> slots;
  REQUIRE(b.rows->take(100, slots) == 6);
  std::map<PartitionId, std::vector<std::int64_t>> offsets;
  for (const auto slot : slots)
    offsets[b.rows->tag(slot).position.partition].push_back(b.rows->tag(slot).position.at.offset);
  CHECK(offsets[used] == std::vector<std::int64_t>{102, 103});
  CHECK(offsets[fresh] == std::vector<std::int64_t>{100, 101, 102, 103});
}

TEST_CASE("Ingest: partitions are gained and given up, and of what was given up nothing is known any more") {
  const PartitionId given{0, 0};
  const PartitionId gained{0, 1};
  std::vector<stream::ScriptedRecord> script;
  for (std::int64_t i = 0; i < 4; ++i)
    for (const auto& partition : {given, gained})
      script.push_back({TimePoint{}, partition, i, i == 1 ? floats({9, 0, 0}) : floats({1, 0, 0}), false});
  Bench b(raw(), {});
  b.source = stream::open_scripted_source({given, gained}, std::move(script), b.clock);
  runtime::Ingest ingest(b.reading, {b.clock, *b.source, *b.decoder, *b.rows, b.ledger, b.commits,
                                     b.assignments, b.gauge, b.status, b.metrics, *b.log, b.wake});
  for (int i = 0; i < 3; ++i) static_cast<void>(ingest.step());
  CHECK(b.rows->waiting() == 3);
  const auto generation = b.assignments.publish({{gained, RowCursor{1, 0}}});
  b.rows->forget_before(generation);
  for (int i = 0; i < 3; ++i) static_cast<void>(ingest.step());
  CHECK(b.ledger.begins() == buffer::Cursors{{gained, {1, 0}}});
  CHECK(b.account(generation, {{gained, {1, 0}}}).intervals ==
        std::vector<RowInterval>{{gained, {1, 0}, {4, 0}, 2, 1, 0, 0}});
}

namespace {

std::vector<std::vector<std::byte>> good_rows(std::size_t n) {
  std::vector<std::vector<std::byte>> all;
  for (std::size_t i = 0; i < n; ++i) all.push_back(floats({1, static_cast<float>(i), 0}));
  return all;
}

std::vector<std::int64_t> offsets_of(Bench& b) {
  std::vector<buffer::SlotIndex> slots;
  b.rows->take(1000, slots);
  std::vector<std::int64_t> all;
  for (const auto slot : slots) all.push_back(b.rows->tag(slot).position.at.offset);
  b.rows->put_back(slots);
  return all;
}

}  // namespace

TEST_CASE("Ingest: what is truncated are whole records, the newest or the oldest, and each has a fate") {
  // The last waiting rows are not decoded: a row that would be dropped for its content is not.
  auto values = good_rows(40);
  values[20] = floats({9, 0, 0});
  Bench b(raw(), values);
  b.reading.largest_batch = 8;
  std::vector<std::int64_t> kept;
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;
  SUBCASE("newest") {
    b.reading.retention = runtime::Retention::truncate_newest;
    kept = {0, 1, 2, 3, 4, 5, 6, 7};
    runs = {{8, 40}};
  }
  SUBCASE("oldest") {
    b.reading.retention = runtime::Retention::truncate_oldest;
    kept = {32, 33, 34, 35, 36, 37, 38, 39};
    runs = {{0, 32}};
  }
  b.begin();
  b.steps(1);
  CHECK(offsets_of(b) == kept);
  CHECK(b.dropped(DropReason::truncated) == 32);
  CHECK(b.dropped(DropReason::bad_label) == 0);
  const auto account = b.account();
  REQUIRE(account.intervals.size() == 1);
  CHECK(account.intervals[0].rows_trained == 8);
  CHECK(account.intervals[0].rows_dropped == 32);
  CHECK(account.intervals[0].adds_up());
  CHECK(account.intervals[0].next == RowCursor{40, 0});
  REQUIRE(account.runs.size() == runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    CHECK(account.runs[i].from == RowCursor{runs[i].first, 0});
    CHECK(account.runs[i].to == RowCursor{runs[i].second, 0});
    CHECK(account.runs[i].fate == static_cast<std::uint32_t>(DropReason::truncated));
  }
}

TEST_CASE("Ingest: all rows persist unless they may be truncated") {
  Bench b(raw(), good_rows(200), 256);
  b.reading.largest_batch = 8;
  b.begin();
  b.steps(5);
  CHECK(b.rows->waiting() == 200);
  CHECK(b.dropped(DropReason::truncated) == 0);
}

TEST_CASE("Ingest: a record in whose middle the group stands is not truncated") {
  Bench b(raw(), {floats({1, 0, 0, 1, 1, 1}), floats({1, 2, 2, 1, 3, 3})});
  b.reading.largest_batch = 0;
  b.reading.retention = runtime::Retention::truncate_newest;
  b.begin();
  b.assignments.publish({{{0, 0}, RowCursor{0, 1}}});
  b.steps(2);
  CHECK(offsets_of(b) == std::vector<std::int64_t>{0});  // its second row
  CHECK(b.dropped(DropReason::truncated) == 1);
}
