// Partitions that a device reads, their next offsets, and the assignment of the reader.
#include <doctest/doctest.h>

#include "runtime/process/topic_name.h"
#include "runtime/train/round_rows.h"
#include "tests/support/example_state.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

struct CountedWake final : Wake {
  void notify() noexcept override { ++calls; }
  int calls = 0;
};

constexpr PartitionId a{0, 0}, b{0, 1}, c{1, 0};

/// The rows of a device that claims a and b; the state has used a up to offset 40 and c up to 7.
struct OwnRows {
  OwnRows() {
    state.partitions.clear();
    state.partitions[a] = {.start = {3, 0}, .next = {40, 2}};
    state.partitions[c] = {.start = {0, 0}, .next = {7, 0}};
  }
  void publish(const PartitionId& partition, std::int64_t offset, std::uint32_t generation) {
    static_cast<void>(buffer.claim());
    RowTag tag;
    tag.position = {partition, {offset, 0}};
    tag.next = {offset + 1, 0};
    tag.generation = generation;
    buffer.publish(tag);
    buffer.flush();
  }

  std::unique_ptr<devices::Device> device = devices::make_host_device();
  AgreedState state = example_state(layout_of(4, 0), *device);
  buffer::RowBuffer buffer{16, RowShape{.shape = {2}, .targets = 1}};
  buffer::Ledger ledger;
  CommittableOffsets commits;
  AssignmentSlot slot;
  CountedWake wake;
  Assignment told;
  LocalIntervals intervals;
  std::unique_ptr<RoundRows> rows =
      RoundRows::create(8, *device, {b, a}, {buffer, ledger, commits, slot, intervals, wake}).value();
};

}  // namespace

TEST_CASE("Assignment slot: the newest replaces one that was not taken, and each is taken once") {
  AssignmentSlot slot;
  Assignment taken;
  CHECK_FALSE(slot.take(taken));
  CHECK(slot.publish({{a, std::nullopt}}) == 0);
  REQUIRE(slot.take(taken));
  CHECK(taken == Assignment{0, {{a, std::nullopt}}});
  CHECK_FALSE(slot.take(taken));
  CHECK(slot.publish({{a, RowCursor{5, 0}}}) == 1);
  CHECK(slot.publish({{b, RowCursor{6, 1}}}) == 2);
  REQUIRE(slot.take(taken));
  CHECK(taken == Assignment{2, {{b, RowCursor{6, 1}}}});
  CHECK_FALSE(slot.take(taken));
}

TEST_CASE(
    "Rows of a round: the first assignment has where the state stands, so that nothing is sought later") {
  OwnRows own;
  own.rows->start_at(own.state);
  REQUIRE(own.slot.take(own.told));
  CHECK(own.told == Assignment{0, {{a, RowCursor{40, 2}}, {b, std::nullopt}}});
  own.publish(a, 41, 0);
  CHECK(own.rows->waiting() == 1);
  CHECK_FALSE(own.rows->own({a, b}));  // as in the view: only the claimed ones
  CHECK_FALSE(own.slot.take(own.told));
  CHECK(own.rows->waiting() == 1);
}

TEST_CASE(
    "Rows of a round: with other partitions the reader is told once, and rows on their way are forgotten") {
  OwnRows own;
  own.rows->start_at(own.state);
  REQUIRE(own.slot.take(own.told));
  own.ledger.began(b, {2, 0});
  own.publish(b, 2, 0);
  REQUIRE(own.rows->own({c, a}));
  own.rows->start_at(own.state);
  REQUIRE(own.slot.take(own.told));
  CHECK(own.told == Assignment{1, {{a, RowCursor{40, 2}}, {c, RowCursor{7, 0}}}});
  CHECK(std::vector(own.rows->partitions().begin(), own.rows->partitions().end()) == std::vector{a, c});
  CHECK(own.wake.calls == 2);
  CHECK(own.rows->waiting() == 0);
  own.publish(b, 3, 0);  // was still in flight
  CHECK_FALSE(own.rows->fill(1, false));
  own.publish(c, 7, 1);
  CHECK(own.rows->fill(1, false));
  REQUIRE(own.rows->own({b}));
  own.rows->start_at(own.state);  // b is unused: starts where reading began, or will begin
  REQUIRE(own.slot.take(own.told));
  CHECK(own.told.generation == 2);
  CHECK(own.told.cursors.size() == 1);
  CHECK(own.told.cursors.at(b) == RowCursor{2, 0});
}

TEST_CASE("Partitions: names of a view are partitions of the job's topics") {
  const std::vector<std::string> topics{"a:b", "t"};
  CHECK(partitions_of(std::vector<std::string>{"t:10", "t:2", "a:b:0"}, topics) ==
        std::vector<PartitionId>{{0, 0}, {1, 2}, {1, 10}});
  CHECK(partitions_of(std::vector<std::string>{"u:1", "t", "t:", "t:1x"}, topics).empty());
}
