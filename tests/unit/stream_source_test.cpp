#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "core/clock.h"
#include "core/rng.h"
#include "stream/open.h"
#include "tests/support/assigned.h"

using namespace rivulet;
using namespace rivulet::stream;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

std::span<const Record> poll(RecordSource& source, std::size_t most) {
  auto records = source.poll(most, Duration(0));
  REQUIRE(records);
  return records.value();
}

struct TextFile {
  explicit TextFile(const std::string& name, const std::string& text)
      : path((std::filesystem::temp_directory_path() / ("rivulet_source_test_" + name)).string()) {
    std::ofstream(path, std::ios::binary) << text;
  }
  ~TextFile() { std::filesystem::remove(path); }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  std::string path;
};

std::string numbered_lines(int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += std::to_string(i) + ",0\n";
  return text;
}

/// Rows of a synthetic source until the clock has advanced by `how_far`, polled every `step`.
std::map<std::int64_t, std::vector<float>> synthetic_rows(Duration step, Duration how_far) {
  VirtualClock clock;
  SyntheticSourceConfig config{.columns = 4, .classes = 3, .seed = 9};
  config.rows_per_second = [](TimePoint t) { return t < TimePoint(seconds(1)) ? 100.0 : 10.0; };
  auto source = open_synthetic_source(config, clock);
  REQUIRE(source);
  REQUIRE(source.value()->assign(testing::reads({{0, 3}})));
  std::map<std::int64_t, std::vector<float>> rows;
  while (clock.now() < TimePoint(how_far)) {
    clock.advance_by(step);
    for (const auto& record : poll(*source.value(), 1000)) {
      std::vector<float> row(5);
      REQUIRE(record.value.size() == 20);
      std::memcpy(row.data(), record.value.data(), 20);
      rows[record.offset] = row;
    }
  }
  return rows;
}

}  // namespace

TEST_CASE("Synthetic source: what comes by when does not depend on how often one looks") {
  const auto fine = synthetic_rows(milliseconds(3), seconds(3));
  const auto coarse = synthetic_rows(milliseconds(750), seconds(3));
  CHECK(fine.size() == doctest::Approx(120).epsilon(0.01));
  CHECK(fine == coarse);
}

TEST_CASE("Synthetic source: a rate of zero is silence, and next_due leads from record to record") {
  VirtualClock clock;
  SyntheticSourceConfig config{.columns = 2, .seed = 1};
  config.rows_per_second = [](TimePoint t) {
    return t < TimePoint(seconds(1)) || t >= TimePoint(seconds(11)) ? 20.0 : 0.0;
  };
  auto source = testing::reading(open_synthetic_source(config, clock).value(), {{0, 0}});
  std::size_t records = 0;
  std::size_t wakes = 0;
  while (clock.now() < TimePoint(seconds(12))) {
    REQUIRE(source->next_due() > clock.now());
    clock.advance_to(source->next_due());
    const auto got = poll(*source, 10).size();
    CHECK(got <= 1);
    records += got;
    ++wakes;
    if (clock.now() > TimePoint(milliseconds(1100)) && clock.now() < TimePoint(seconds(11))) CHECK(got == 0);
  }
  CHECK(records >= 39);
  CHECK(records <= 41);
  CHECK(wakes < records + 15);
}

TEST_CASE("Synthetic source: blank rows are zeros, as many and at the same times") {
  VirtualClock clock;
  SyntheticSourceConfig config{.columns = 3, .classes = 10};
  config.rows_per_second = [](TimePoint) { return 10.0; };
  const auto usual = testing::reading(open_synthetic_source(config, clock).value(), {{0, 0}});
  config.blank = true;
  const auto blank = testing::reading(open_synthetic_source(config, clock).value(), {{0, 0}});
  CHECK(blank->next_due() == usual->next_due());
  clock.advance_to(TimePoint(seconds(1)));
  const auto made = poll(*usual, 100);
  const auto zeros = poll(*blank, 100);
  REQUIRE(zeros.size() == 10);
  CHECK(zeros.size() == made.size());
  for (std::size_t i = 0; i < zeros.size(); ++i) {
    CHECK(zeros[i].offset == made[i].offset);
    CHECK(zeros[i].value.size() == made[i].value.size());
    CHECK(std::ranges::all_of(zeros[i].value, [](std::byte b) { return b == std::byte{0}; }));
    CHECK_FALSE(std::ranges::all_of(made[i].value, [](std::byte b) { return b == std::byte{0}; }));
  }
}

TEST_CASE("Synthetic source: labels are classes, every class occurs, and a linear rule separates them") {
  const auto rows = synthetic_rows(milliseconds(100), seconds(3));
  std::map<float, int> seen;
  for (const auto& [offset, row] : rows) ++seen[row[0]];
  CHECK(seen.size() == 3);
  CHECK(seen.begin()->first == 0);
  CHECK(seen.rbegin()->first == 2);
}

TEST_CASE("Synthetic source: regression targets follow one hidden rule on every partition") {
  VirtualClock clock;
  SyntheticSourceConfig config{.columns = 1, .seed = 5};
  config.rows_per_second = [](TimePoint) { return 1000.0; };
  auto source = testing::reading(open_synthetic_source(config, clock).value(), {{0, 0}, {0, 1}});
  clock.advance_by(seconds(1));
  double xx[2] = {};
  double xy[2] = {};
  for (const auto& record : poll(*source, 4000)) {
    float row[2];
    std::memcpy(row, record.value.data(), sizeof row);
    xx[record.partition.partition] += row[1] * row[1];
    xy[record.partition.partition] += row[0] * row[1];
  }
  CHECK(std::abs(xy[0] / xx[0]) > 0.01);
  CHECK(xy[0] / xx[0] == doctest::Approx(xy[1] / xx[1]).epsilon(0.02));
}

TEST_CASE("Scripted source: records come when they are due, in order of time, and then never again") {
  VirtualClock clock;
  std::vector<ScriptedRecord> script;
  const auto add = [&](int ms, int partition, int offset, const char* text) {
    script.push_back({TimePoint(milliseconds(ms)), {0, partition}, offset, bytes_of(text), false});
  };
  add(30, 0, 8, "c");
  add(10, 0, 5, "a");
  add(20, 1, 0, "b");
  script.push_back({TimePoint(milliseconds(40)), {0, 1}, 1, {}, true});
  auto source = testing::reading(open_scripted_source({{0, 0}, {0, 1}}, script, clock), {{0, 0}, {0, 1}});
  CHECK(source->partitions()[0].next_offset == 5);
  CHECK(source->next_due() == TimePoint(milliseconds(10)));
  CHECK(poll(*source, 9).empty());
  clock.advance_to(TimePoint(milliseconds(30)));
  CHECK(poll(*source, 0).empty());
  CHECK(source->partitions()[0].paused);
  CHECK(source->partitions()[0].high_watermark == 9);
  auto records = poll(*source, 2);
  REQUIRE(records.size() == 2);
  CHECK(text_of(records[0].value) == "a");
  CHECK(text_of(records[1].value) == "b");
  records = poll(*source, 2);
  REQUIRE(records.size() == 1);
  CHECK(text_of(records[0].value) == "c");
  CHECK(source->partitions()[0].next_offset == 9);
  CHECK_FALSE(source->exhausted());
  CHECK(source->next_due() == TimePoint(milliseconds(40)));
  clock.advance_to(TimePoint(milliseconds(40)));
  records = poll(*source, 2);
  REQUIRE(records.size() == 1);
  CHECK(records[0].tombstone);
  CHECK(source->exhausted());
  CHECK(source->next_due() == TimePoint::max());
  const NextOffset back[] = {{{0, 0}, 6}};
  REQUIRE(testing::seek(*source, back));
  CHECK_FALSE(source->exhausted());
  records = poll(*source, 2);
  REQUIRE(records.size() == 1);
  CHECK(records[0].offset == 8);
}

TEST_CASE(
    "File source: every partition plays the whole file in an order of its own, the same for the same seed") {
  const TextFile file("order.csv", numbered_lines(50));
  VirtualClock clock;
  const auto play = [&](std::uint64_t seed) {
    FileSourceConfig config{.path = file.path, .format = "csv", .seed = seed};
    auto source = testing::reading(open_file_source(config, clock).value(), {{0, 0}, {0, 1}});
    std::map<int, std::vector<std::string>> order;
    while (!source->exhausted())
      for (const auto& record : poll(*source, 7))
        order[record.partition.partition].push_back(text_of(record.value));
    return order;
  };
  auto one = play(1);
  CHECK(one[0].size() == 50);
  CHECK(std::set(one[0].begin(), one[0].end()).size() == 50);
  CHECK(one[0] != one[1]);
  CHECK(one == play(1));
  CHECK(one != play(2));
  const auto as_written = play(0);
  CHECK(as_written.at(0)[0] == "0,0");
  CHECK(as_written.at(0)[49] == "49,0");
}

TEST_CASE("File source: repeats in a new order, keeps its rate, and continues at an offset") {
  const TextFile file("rate.csv", numbered_lines(10));
  VirtualClock clock;
  FileSourceConfig config{.path = file.path, .format = "csv", .rows_per_second = 100, .repeat = true};
  auto source = testing::reading(open_file_source(config, clock).value(), {{0, 0}});
  std::vector<std::string> all;
  for (int i = 0; i < 100; ++i) {
    clock.advance_to(source->next_due());
    for (const auto& record : poll(*source, 5)) all.push_back(text_of(record.value));
  }
  CHECK(all.size() == 100);
  CHECK(clock.now() == TimePoint(milliseconds(990)));
  CHECK(std::vector(all.begin(), all.begin() + 10) != std::vector(all.begin() + 10, all.begin() + 20));
  CHECK(std::set(all.begin() + 90, all.end()).size() == 10);
  CHECK_FALSE(source->exhausted());
  auto resumed = testing::reading(open_file_source(config, clock).value(), {{0, 0}}, {{{0, 0}, 37}});
  const auto records = poll(*resumed, 5);
  REQUIRE(records.size() == 1);
  CHECK(records[0].offset == 37);
  CHECK(text_of(records[0].value) == all[37]);
}

TEST_CASE("File source: a file of another format than the decoder's is refused") {
  const TextFile file("format.csv", numbered_lines(3));
  VirtualClock clock;
  const auto source = open_file_source({.path = file.path, .format = "json"}, clock);
  REQUIRE_FALSE(source);
  CHECK(source.error().code == ErrorCode::invalid_config);
  CHECK(source.error().message.find("contains csv records") != std::string::npos);
}
