#include <doctest/doctest.h>

#include <vector>

#include "buffer/batch.h"

using namespace rivulet;
using buffer::Batch;
using buffer::RowBuffer;

namespace {

const RowShape shape{{2}, 1};
constexpr PartitionId p0{0, 0};
constexpr PartitionId p1{0, 1};

void write_single(RowBuffer& buffer, PartitionId partition, std::int64_t offset) {
  const RowSlot slot = buffer.claim();
  slot.features[0] = static_cast<float>(offset);
  slot.features[1] = static_cast<float>(partition.partition);
  slot.targets[0] = 0.0F;
  buffer.publish({{partition, {offset, 0}}, {offset + 1, 0}, 0});
  buffer.flush();
}

/// Offsets of the rows that a batch announces.
std::vector<std::int64_t> announced(const Batch& batch) {
  std::vector<std::int64_t> offsets;
  for (const RowTag& tag : batch.own_tags()) offsets.push_back(tag.position.at.offset);
  return offsets;
}

/// A batch with its own memory over a buffer of 16 rows.
struct Fixture {
  std::vector<float> features = std::vector<float>(16);
  std::vector<float> targets = std::vector<float>(8);
  RowBuffer buffer{16, shape};
  Batch batch{features, targets, shape, 8};
};

}  // namespace

TEST_CASE("Batch: rows are gathered once, into the memory that was lent") {
  Fixture f;
  for (std::int64_t offset = 0; offset < 5; ++offset) write_single(f.buffer, p0, offset);
  CHECK(f.batch.fill(f.buffer, 3) == 3);
  CHECK(f.batch.fill(f.buffer, 1) == 1);  // more rows are appended
  const BatchView view = f.batch.view();
  CHECK(view.rows == 4);
  CHECK(view.features.data() == f.features.data());
  CHECK(view.targets.data() == f.targets.data());
  CHECK(view.features.size() == 8);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(view.features[2 * i] == static_cast<float>(i));
    CHECK(view.tags[i].position.at.offset == static_cast<std::int64_t>(i));
  }
  CHECK(f.buffer.waiting() == 1);
}

TEST_CASE("Batch: never more rows than there is memory for") {
  Fixture f;
  for (std::int64_t offset = 0; offset < 12; ++offset) write_single(f.buffer, p0, offset);
  CHECK(f.batch.fill(f.buffer, 100) == 8);
  CHECK(f.batch.fill(f.buffer, 1) == 0);
  CHECK(f.buffer.waiting() == 4);
}

TEST_CASE("Batch: slots are free after settle and not before") {
  Fixture f;
  for (std::int64_t offset = 0; offset < 16; ++offset) write_single(f.buffer, p0, offset);
  f.batch.fill(f.buffer, 8);
  CHECK(f.buffer.free_rows() == 0);
  f.batch.release(f.buffer);
  CHECK(f.buffer.free_rows() == 8);
  CHECK(f.batch.rows() == 0);
  CHECK(f.batch.own_tags().empty());
  f.batch.fill(f.buffer, 1);
  CHECK(f.batch.view().tags[0].position.at.offset == 8);
}

TEST_CASE("Batch: a failed round puts its rows back in front, in order") {
  Fixture f;
  for (std::int64_t offset = 0; offset < 6; ++offset) write_single(f.buffer, p0, offset);
  f.batch.fill(f.buffer, 4);
  f.batch.put_back(f.buffer);
  CHECK(f.batch.rows() == 0);
  CHECK(f.buffer.waiting() == 6);
  f.batch.fill(f.buffer, 6);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(f.batch.view().tags[i].position.at.offset == static_cast<std::int64_t>(i));
  }
}

TEST_CASE("Batch: copies of others' rows are computed on, counted nowhere, and gone with the next rows") {
  Fixture f;
  for (std::int64_t offset = 0; offset < 5; ++offset) write_single(f.buffer, p0, offset);
  f.batch.fill(f.buffer, 2);
  const std::vector<float> features{70, 71}, targets{7};
  f.batch.add_injected(features, targets);
  f.batch.add_injected(features, targets);
  CHECK(f.batch.rows() == 4);
  CHECK(f.batch.own_rows() == 2);
  const BatchView view = f.batch.view();
  CHECK(view.rows == 4);
  CHECK(view.features[6] == 70);
  CHECK(view.targets[3] == 7);
  CHECK(view.tags.size() == 2);
  CHECK(announced(f.batch) == std::vector<std::int64_t>{0, 1});

  CHECK(f.batch.fill(f.buffer, 1) == 1);  // replaces the first copy
  CHECK(f.batch.rows() == 3);
  CHECK(f.batch.own_rows() == 3);
  CHECK(f.batch.view().features[4] == 2);
  CHECK(announced(f.batch) == std::vector<std::int64_t>{0, 1, 2});
  f.batch.add_injected(features, targets);
  f.batch.put_back(f.buffer);
  CHECK(f.buffer.waiting() == 5);
  CHECK(f.batch.rows() == 0);
}
