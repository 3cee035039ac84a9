#include <doctest/doctest.h>

#include <vector>

#include "buffer/batch.h"

using namespace rivulet;
using buffer::Batch;
using buffer::merge_into;
using buffer::RowBuffer;

namespace {

const RowShape shape{{2}, 1};
constexpr PartitionId p0{0, 0};
constexpr PartitionId p1{0, 1};

void write(RowBuffer& buffer, PartitionId partition, RowCursor at, RowCursor next,
           std::uint32_t dropped = 0) {
  const RowSlot slot = buffer.claim();
  slot.features[0] = static_cast<float>(at.offset);
  slot.features[1] = static_cast<float>(partition.partition);
  slot.targets[0] = static_cast<float>(at.row);
  buffer.publish({{partition, at}, next, 0, dropped});
  buffer.flush();
}

void write_single(RowBuffer& buffer, PartitionId partition, std::int64_t offset, std::uint32_t dropped = 0) {
  write(buffer, partition, {offset, 0}, {offset + 1, 0}, dropped);
}

/// A batch in its own memory over a buffer of 16 rows.
struct Fixture {
  std::vector<float> features = std::vector<float>(16);
  std::vector<float> targets = std::vector<float>(8);
  RowBuffer buffer{16, shape};
  Batch batch{features, targets, shape, 8};
};

RowInterval interval(PartitionId p, RowCursor first, RowCursor next, std::uint32_t trained,
                     std::uint32_t dropped) {
  return {p, first, next, trained, dropped};
}

}  // namespace

TEST_CASE("Batch: rows are gathered once, into the memory that was lent") {
  Fixture f;
  for (std::int64_t offset = 0; offset < 5; ++offset) write_single(f.buffer, p0, offset);
  CHECK(f.batch.fill(f.buffer, 3) == 3);
  CHECK(f.batch.fill(f.buffer, 1) == 1);  // more rows join behind
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
  f.batch.settle(f.buffer);
  CHECK(f.buffer.free_rows() == 8);
  CHECK(f.batch.rows() == 0);
  CHECK(f.batch.intervals().empty());
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

TEST_CASE("Batch: one interval per partition, in order, over drops, holes and parts of records") {
  Fixture f;
  write_single(f.buffer, p1, 40, 2);    // two rows were dropped in front of it
  write(f.buffer, p0, {7, 1}, {7, 2});  // the second row of a record
  write(f.buffer, p0, {7, 2}, {8, 0});  // its last one
  write_single(f.buffer, p1, 44, 3);    // 41..43 dropped
  write_single(f.buffer, p0, 11);       // 8..10 are holes
  write_single(f.buffer, p0, 12);       // stays in the buffer
  f.batch.fill(f.buffer, 5);
  const std::vector<RowInterval> expected{interval(p0, {7, 1}, {12, 0}, 3, 0),
                                          interval(p1, {40, 0}, {45, 0}, 2, 5)};
  CHECK(f.batch.intervals() == expected);
}

TEST_CASE(
    "Batch: rows lent out leave the computation, are still announced, and come back when the round failed") {
  Fixture f;
  for (std::int64_t offset = 0; offset < 6; ++offset) write_single(f.buffer, p0, offset);
  f.batch.fill(f.buffer, 6);
  const BatchView lent = f.batch.lend_out(2);
  CHECK(lent.rows == 2);
  CHECK(lent.features[0] == 4.0F);
  CHECK(lent.tags[1].position.at.offset == 5);
  CHECK(f.batch.rows() == 4);
  CHECK(f.batch.view().features.size() == 8);
  CHECK(f.batch.own_rows() == 6);
  CHECK(f.batch.intervals() == std::vector<RowInterval>{interval(p0, {0, 0}, {6, 0}, 6, 0)});

  f.batch.put_back(f.buffer);
  CHECK(f.buffer.waiting() == 6);
  f.batch.fill(f.buffer, 6);
  CHECK(f.batch.view().tags[5].position.at.offset == 5);
}

TEST_CASE("Batch: a failed transfer undoes the loan") {
  Fixture f;
  for (std::int64_t offset = 0; offset < 4; ++offset) write_single(f.buffer, p0, offset);
  f.batch.fill(f.buffer, 4);
  f.batch.lend_out(1);
  const BatchView second = f.batch.lend_out(2);  // to another peer: the rows in front of the first loan
  CHECK(second.features[0] == 1.0F);
  CHECK(f.batch.rows() == 1);
  f.batch.take_back_lent();
  CHECK(f.batch.rows() == 4);
  CHECK(f.batch.view().features[6] == 3.0F);
  f.batch.settle(f.buffer);
  CHECK(f.buffer.free_rows() == 16);
}

TEST_CASE("Batch: a guest is computed on and never announced or kept") {
  Fixture f;
  write_single(f.buffer, p0, 0);
  f.batch.fill(f.buffer, 4);
  const std::vector<float> features{70.0F, 71.0F};
  const std::vector<float> targets{3.0F};
  f.batch.add_guest(features, targets, {{p1, {900, 0}}, {901, 0}});
  CHECK(f.batch.rows() == 2);
  CHECK(f.batch.own_rows() == 1);
  CHECK(f.batch.view().features[3] == 71.0F);
  CHECK(f.batch.view().targets[1] == 3.0F);
  CHECK(f.batch.view().tags[1].position.partition == p1);
  CHECK(f.batch.intervals() == std::vector<RowInterval>{interval(p0, {0, 0}, {1, 0}, 1, 0)});
  f.batch.put_back(f.buffer);
  CHECK(f.buffer.waiting() == 1);
}

TEST_CASE("Intervals: those of a partition become one, across gaps too; what overlaps is appended") {
  std::vector<RowInterval> all;
  merge_into(all, interval(p0, {5, 0}, {7, 0}, 2, 0));
  merge_into(all, interval(p1, {7, 0}, {9, 0}, 2, 0));    // same cursor, another partition
  merge_into(all, interval(p0, {7, 0}, {7, 4}, 3, 1));    // behind
  merge_into(all, interval(p0, {2, 0}, {5, 0}, 3, 0));    // in front
  merge_into(all, interval(p0, {20, 0}, {21, 0}, 1, 0));  // behind a gap
  merge_into(all, interval(p0, {0, 0}, {1, 0}, 1, 2));    // in front of one
  merge_into(all, interval(p1, {8, 0}, {10, 0}, 2, 0));   // overlapping: for others to refuse
  const std::vector<RowInterval> expected{interval(p0, {0, 0}, {21, 0}, 10, 3),
                                          interval(p1, {7, 0}, {9, 0}, 2, 0),
                                          interval(p1, {8, 0}, {10, 0}, 2, 0)};
  CHECK(all == expected);
}
