#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/digest.h"
#include "runtime/state/agreed_state.h"
#include "tests/support/aborts.h"
#include "tests/support/example_state.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

TEST_CASE("Hasher: values and arrays in any mix have the digest of their bytes in a row") {
  Rng rng(3);
  std::vector<std::byte> row;
  Hasher hasher;
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t value = rng.next();
    const auto bytes = std::as_bytes(std::span(&value, 1)).first(1 + rng.below(8));
    const bool as_array = rng.below(40) == 0;
    if (as_array)
      hasher.add(bytes);
    else
      hasher.add_value(value);
    const auto added = as_array ? bytes : std::as_bytes(std::span(&value, 1));
    row.insert(row.end(), added.begin(), added.end());
    if (i % 500 == 0) CHECK(hasher.finish() == rivulet::digest_of(row));  // and may continue
  }
  CHECK(hasher.finish() == rivulet::digest_of(row));
}

TEST_CASE("State: its digest is that of its values in a row, however many there are") {
  const auto device = devices::make_host_device();
  AgreedState state{devices::ModelState::create({.parameters = 1}, *device).value(), {3, 4}, 5, {}};
  for (const std::size_t runs : {0UL, 1UL, 100UL, 256UL}) {
    CAPTURE(runs);
    PartitionProgress& books = state.partitions[{0, static_cast<std::int32_t>(runs)}];
    books = {{1, 2}, {900, 3}, 10, 11, 12, {13, 14}, {}};
    books.dropped[10] = runs;  // a drop reason added later
    for (std::size_t i = 0; i < runs; ++i)
      books.runs.push_back({{0, 0}, {static_cast<std::int64_t>(i), 1}, {900, 2}, i, 1});
    Hasher hasher;
    REQUIRE(state.model.hash_into(hasher, *device));
    const auto add_cursor = [&](const RowCursor& at) {
      hasher.add_value(at.offset);
      hasher.add_value(at.row);
    };
    hasher.add_value(state.stamp.step);
    hasher.add_value(state.rows);
    hasher.add_value(std::uint64_t{state.partitions.size()});
    for (const auto& [id, p] : state.partitions) {
      hasher.add_value(id.topic);
      hasher.add_value(id.partition);
      add_cursor(p.start);
      add_cursor(p.next);
      for (const std::uint64_t number : {p.trained, p.shared, p.holes}) hasher.add_value(number);
      for (const std::uint64_t rows : p.dropped) hasher.add_value(rows);
      for (const SkippedRange& run : p.runs) {
        add_cursor(run.from);
        add_cursor(run.to);
        hasher.add_value(run.rows);
        hasher.add_value(run.fate);
      }
    }
    CHECK(digest_of(state, *device).value() == hasher.finish());
  }
}

TEST_CASE("Agreed state: intervals move a partition on and count what was trained and dropped") {
  const auto device = devices::make_host_device();
  AgreedState state{devices::ModelState::create(layout_of(4, 0), *device).value(), {}, 0, {}};
  const std::vector<SkippedRange> runs{{{0, 3}, {11, 0}, {12, 0}, 2, 4}, {{1, 3}, {0, 0}, {9, 0}, 9, 1}};
  fold_interval(state, {{0, 3}, {10, 0}, {12, 1}, 5, 2, 5, 0}, runs);
  fold_interval(state, {{0, 3}, {12, 1}, {12, 1}, 0, 0, 0, 0}, {});
  fold_interval(state, {{0, 3}, {12, 1}, {20, 0}, 7, 0, 0, 1}, {});
  fold_interval(state, {{1, 3}, {0, 0}, {1, 0}, 1, 0, 0, 0}, {});
  REQUIRE(state.partitions.size() == 2);
  CHECK(state.partitions.at({0, 3}).next == RowCursor{20, 0});
  CHECK(state.partitions.at({0, 3}).start == RowCursor{10, 0});
  CHECK(state.partitions.at({0, 3}).trained == 12);
  CHECK(state.partitions.at({0, 3}).dropped[4] == 2);
  CHECK(state.partitions.at({0, 3}).all_dropped() == 2);
  CHECK(state.partitions.at({0, 3}).runs.size() == 1);
  CHECK(aborts([&] { fold_interval(state, {{0, 3}, {19, 0}, {19, 9}, 1, 0}, {}); }));
  CHECK(aborts([&] { fold_interval(state, {{0, 3}, {30, 0}, {25, 0}, 1, 0}, {}); }));
  CHECK(aborts([&] { fold_interval(state, {{0, 3}, {20, 0}, {25, 0}, 4, 0}, {}); }));  // a row is missing
}

TEST_CASE("Agreed state: the digest covers every number of it") {
  const auto device = devices::make_host_device();
  const auto layout = layout_of(8, 2);
  const Digest base = digest_of(example_state(layout, *device), *device).value();
  CHECK(digest_of(example_state(layout, *device), *device).value() == base);
  const auto changed = [&](auto change) {
    AgreedState state = example_state(layout, *device);
    change(state);
    return digest_of(state, *device).value() != base;
  };
  CHECK(changed([](AgreedState& s) { s.model.parameters().as<float>()[7] += 1e-6F; }));
  CHECK(changed([](AgreedState& s) { s.model.optimizer_array(0).as<float>()[0] += 1; }));
  CHECK(changed([](AgreedState& s) { s.model.buffers().as<float>()[1] += 1; }));
  CHECK(changed([](AgreedState& s) { ++s.stamp.step; }));
  CHECK(changed([](AgreedState& s) { ++s.rows; }));
  CHECK_FALSE(changed([](AgreedState& s) { ++s.stamp.lineage; }));  // adopted by a later view: the same state
  CHECK(changed([](AgreedState& s) { ++s.partitions[{0, 0}].start.offset; }));
  CHECK(changed([](AgreedState& s) { ++s.partitions[{0, 0}].next.offset; }));
  CHECK(changed([](AgreedState& s) { ++s.partitions[{0, 0}].next.row; }));
  CHECK(changed([](AgreedState& s) { ++s.partitions[{0, 0}].trained; }));
  CHECK(changed([](AgreedState& s) { ++s.partitions[{0, 0}].dropped[3]; }));
  CHECK(changed([](AgreedState& s) { ++s.partitions[{0, 0}].dropped[9]; }));
  CHECK(changed([](AgreedState& s) { ++s.partitions[{0, 0}].shared; }));
  CHECK(changed([](AgreedState& s) { ++s.partitions[{0, 0}].holes; }));
  CHECK(changed([](AgreedState& s) { ++s.partitions[{0, 0}].runs[1].rows; }));
  CHECK(changed([](AgreedState& s) { ++s.partitions[{0, 0}].runs[1].fate; }));
  CHECK(changed([](AgreedState& s) { s.partitions[{0, 8}] = {}; }));
  CHECK(changed([](AgreedState& s) { s.partitions.erase({2, -1}); }));
}
