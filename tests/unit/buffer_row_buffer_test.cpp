#include <doctest/doctest.h>

#include <cstdint>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "buffer/row_buffer.h"
#include "core/rng.h"

using namespace rivulet;
using buffer::RowBuffer;
using buffer::SlotIndex;

namespace {

constexpr std::size_t columns = 3;
const RowShape shape{{3}, 1};

float feature_of(std::int64_t row, std::size_t column) {
  return static_cast<float>((row * 7 + static_cast<std::int64_t>(column)) % 65536);
}

std::uint32_t generation_of_rows = 0;

RowTag tag_of(std::int64_t row) {
  RowTag tag;
  tag.position = {{0, 0}, {row, 0}};
  tag.next = {row + 1, 0};
  tag.timestamp_ms = row * 10;
  tag.generation = generation_of_rows;
  return tag;
}

void write_row(RowBuffer& buffer, std::int64_t row) {
  const RowSlot slot = buffer.claim();
  for (std::size_t c = 0; c < columns; ++c) slot.features[c] = feature_of(row, c);
  slot.targets[0] = static_cast<float>(row % 10);
  buffer.publish(tag_of(row));
}

void write_rows(RowBuffer& buffer, std::int64_t first, std::int64_t end) {
  for (std::int64_t row = first; row < end; ++row) write_row(buffer, row);
  buffer.flush();
}

bool holds(const RowBuffer& buffer, SlotIndex slot, std::int64_t row) {
  if (buffer.tag(slot).position.at.offset != row || buffer.tag(slot).timestamp_ms != row * 10) return false;
  for (std::size_t c = 0; c < columns; ++c) {
    if (buffer.features(slot)[c] != feature_of(row, c)) return false;
  }
  return buffer.targets(slot)[0] == static_cast<float>(row % 10);
}

std::vector<std::int64_t> offsets(const RowBuffer& buffer, const std::vector<SlotIndex>& slots) {
  std::vector<std::int64_t> out;
  for (SlotIndex slot : slots) out.push_back(buffer.tag(slot).position.at.offset);
  return out;
}

std::vector<std::int64_t> range(std::int64_t first, std::int64_t end) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(end - first));
  std::iota(out.begin(), out.end(), first);
  return out;
}

/// The train thread of the stress test: takes rows, sometimes returns a part, checks, releases.
struct Consumer {
  RowBuffer& buffer;
  Rng rng;
  std::int64_t expected = 0;
  std::int64_t wrong = 0;
  std::uint64_t put_back = 0;

  void turn() {
    if (buffer.waiting() > buffer.capacity()) ++wrong;
    std::vector<SlotIndex> slots;
    const std::size_t n = buffer.take(1 + rng.below(96), slots);
    if (n == 0) {
      std::this_thread::yield();
      return;
    }
    const std::size_t kept = rng.below(4) == 0 ? rng.below(n + 1) : n;
    for (std::size_t i = 0; i < kept; ++i) wrong += holds(buffer, slots[i], expected++) ? 0 : 1;
    buffer.put_back(std::span<const SlotIndex>(slots).subspan(kept));
    buffer.release(std::span<const SlotIndex>(slots).first(kept));
    put_back += n - kept;
  }
};

/// The ingest thread of the stress test: adds as many rows as fit, flushed in bursts of odd sizes.
void produce(RowBuffer& buffer, std::int64_t rows, std::uint64_t seed) {
  Rng rng(seed);
  std::int64_t row = 0;
  while (row < rows) {
    const std::size_t burst = std::min<std::size_t>(1 + rng.below(200), buffer.free_rows());
    for (std::size_t i = 0; i < burst && row < rows; ++i) write_row(buffer, row++);
    buffer.flush();
    if (burst == 0) std::this_thread::yield();
  }
}

}  // namespace

TEST_CASE("Buffer: rows come out once, in order, with what was written") {
  RowBuffer buffer(8, shape);
  write_rows(buffer, 0, 5);
  std::vector<SlotIndex> slots;
  CHECK(buffer.take(3, slots) == 3);
  CHECK(buffer.take(100, slots) == 2);
  CHECK(buffer.take(1, slots) == 0);
  REQUIRE(slots.size() == 5);
  for (std::size_t i = 0; i < slots.size(); ++i) CHECK(holds(buffer, slots[i], static_cast<std::int64_t>(i)));
}

TEST_CASE("Buffer: a row is decoded into the memory it is read from") {
  RowBuffer buffer(4, shape);
  const RowSlot written = buffer.claim();
  buffer.publish(tag_of(0));
  buffer.flush();
  std::vector<SlotIndex> slots;
  REQUIRE(buffer.take(1, slots) == 1);
  CHECK(buffer.features(slots[0]).data() == written.features.data());
  CHECK(buffer.targets(slots[0]).data() == written.targets.data());
  CHECK(reinterpret_cast<std::uintptr_t>(buffer.features(0).data()) % 64 == 0);
}

TEST_CASE("Buffer: a claim that was not published is handed out again") {
  RowBuffer buffer(2, shape);
  const RowSlot first = buffer.claim();
  CHECK(buffer.free_rows() == 2);
  CHECK(buffer.claim().features.data() == first.features.data());
  buffer.publish(tag_of(0));
  CHECK(buffer.free_rows() == 1);
  CHECK(buffer.claim().features.data() != first.features.data());
}

TEST_CASE("Buffer: published rows are invisible until they are flushed") {
  RowBuffer buffer(4, shape);
  write_row(buffer, 0);
  std::vector<SlotIndex> slots;
  CHECK(buffer.waiting() == 0);
  CHECK(buffer.take(4, slots) == 0);
  buffer.flush();
  CHECK(buffer.waiting() == 1);
  CHECK(buffer.take(4, slots) == 1);
  CHECK(buffer.waiting() == 0);
}

TEST_CASE("Buffer: a full buffer refuses and loses nothing") {
  constexpr std::int64_t rows = 300;  // more than one fetch of free slots
  RowBuffer buffer(rows, shape);
  write_rows(buffer, 0, rows);
  CHECK(buffer.free_rows() == 0);
  CHECK(buffer.waiting() == rows);
  std::vector<SlotIndex> slots;
  buffer.take(1, slots);
  CHECK(buffer.free_rows() == 0);  // taken, but not released
  buffer.release(slots);
  CHECK(buffer.free_rows() == 1);
  write_rows(buffer, rows, rows + 1);
  CHECK(buffer.free_rows() == 0);
  slots.clear();
  CHECK(buffer.take(1000, slots) == rows);
  CHECK(offsets(buffer, slots) == range(1, rows + 1));
}

TEST_CASE("Buffer: a slab that no machine has room for is an error that says how large it would be") {
  const auto none = RowBuffer::create(1 << 22, RowShape{{100'000'000}, 1});
  REQUIRE_FALSE(none);
  CHECK(none.error().code == ErrorCode::unavailable);
  CHECK(none.error().message ==
        "no memory for the row buffer: 4194304 rows of 100000000 values need 1600000621 MiB; lower "
        "buffer.rows");
  CHECK(RowBuffer::create(8, RowShape{{3}, 1}));
}

TEST_CASE("Buffer: rows put back are the oldest again, in their order") {
  RowBuffer buffer(16, shape);
  write_rows(buffer, 0, 10);
  std::vector<SlotIndex> first;
  std::vector<SlotIndex> second;
  buffer.take(4, first);   // 0 1 2 3
  buffer.take(3, second);  // 4 5 6
  buffer.put_back(second);
  buffer.put_back(first);
  CHECK(buffer.waiting() == 10);
  std::vector<SlotIndex> part;
  buffer.take(2, part);  // from the middle of the returned rows
  CHECK(offsets(buffer, part) == range(0, 2));
  buffer.put_back(part);
  std::vector<SlotIndex> all;
  CHECK(buffer.take(16, all) == 10);
  CHECK(offsets(buffer, all) == range(0, 10));
}

TEST_CASE("Buffer: what is discarded is free again, the others keep their order") {
  RowBuffer buffer(10, shape);
  write_rows(buffer, 0, 10);
  std::vector<SlotIndex> slots;
  buffer.take(3, slots);
  buffer.put_back(slots);
  slots.clear();
  CHECK(buffer.discard([](const RowTag& tag) { return tag.position.at.offset % 2 == 0; }) == 5);
  CHECK(buffer.waiting() == 5);
  CHECK(buffer.free_rows() == 5);
  REQUIRE(buffer.take(10, slots) == 5);
  CHECK(offsets(buffer, slots) == std::vector<std::int64_t>{1, 3, 5, 7, 9});
}

TEST_CASE("Buffer: rows of a forgotten generation never come out, those on their way included") {
  RowBuffer buffer(20, shape);
  write_rows(buffer, 0, 4);
  buffer.forget_before(1);
  CHECK(buffer.waiting() == 0);
  write_rows(buffer, 4, 8);  // read before the reader received the seek
  generation_of_rows = 1;
  write_rows(buffer, 8, 12);
  generation_of_rows = 0;
  CHECK(buffer.waiting() == 8);
  std::vector<SlotIndex> slots;
  REQUIRE(buffer.take(3, slots) == 3);
  CHECK(offsets(buffer, slots) == range(8, 11));
  CHECK(buffer.take(20, slots) == 1);
  CHECK(buffer.free_rows() == 16);
}

TEST_CASE("Buffer: slots are used again after release, in any number of rounds") {
  RowBuffer buffer(5, shape);
  std::int64_t row = 0;
  for (int round = 0; round < 100; ++round) {
    write_rows(buffer, row, row + 3);
    std::vector<SlotIndex> slots;
    REQUIRE(buffer.take(3, slots) == 3);
    for (SlotIndex slot : slots) REQUIRE(holds(buffer, slot, row++));
    buffer.release(slots);
    REQUIRE(buffer.free_rows() == 5);
  }
}

TEST_CASE("Buffer: a buffer that is never full writes the same few slots again and again") {
  RowBuffer buffer(1'000, shape);
  std::set<SlotIndex> used;
  std::vector<SlotIndex> slots;
  for (std::int64_t round = 0; round < 100; ++round) {
    write_rows(buffer, round * 10, round * 10 + 10);
    slots.clear();
    buffer.take(10, slots);
    used.insert(slots.begin(), slots.end());
    buffer.release(slots);
  }
  CHECK(used.size() == 10);
}

TEST_CASE("Buffer: a claimed slot stays the same when others are released meanwhile") {
  RowBuffer buffer(4, shape);
  write_rows(buffer, 0, 2);
  std::vector<SlotIndex> slots;
  buffer.take(2, slots);
  const float* claimed = buffer.claim().features.data();
  buffer.release(slots);
  buffer.flush();
  CHECK(buffer.claim().features.data() == claimed);
}

TEST_CASE("Buffer: a million rows cross two threads in order and unharmed") {
  constexpr std::int64_t rows = 1'000'000;
  RowBuffer buffer(1000, shape);
  Consumer consumer{buffer, Rng(11)};
  std::thread ingest(produce, std::ref(buffer), rows, 12);
  while (consumer.expected < rows) consumer.turn();
  ingest.join();
  CHECK(consumer.wrong == 0);
  CHECK(consumer.put_back > 0);
  CHECK(buffer.waiting() == 0);
  CHECK(buffer.free_rows() == buffer.capacity());
}
