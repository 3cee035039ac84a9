// Announced rows are accepted only if they match the state, the offsets and the device's own list of drops.
#include "runtime/state/announced.h"

#include <doctest/doctest.h>

using namespace rivulet;
using namespace rivulet::runtime;

namespace {

constexpr auto malformed = static_cast<std::uint32_t>(DropReason::malformed);

/// Three devices; partition 0 is at 10, partition 1 is this device's, partition 2 is new.
struct Round {
  Round() : device(devices::make_host_device()) {
    table.facts.resize(3);
    table.sections.resize(3);
    view.members = {"a", "b", "c"};
    view.rank = 1;
    state.partitions[{0, 0}] = {{0, 0}, {10, 0}, 10, 0, 0, {}, {}};
  }
  Status check() { return check_announced(table, view, state, own, topics); }
  void refuse(const std::string& why) {
    const auto answer = check();
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == ErrorCode::protocol);
    CHECK(answer.error().message == why);
  }
  std::unique_ptr<devices::Device> device;
  AgreedState state{devices::ModelState::create({.parameters = 1}, *device).value(), {}, 0, {}};
  sync::FactsTable table;
  sync::ViewSpec view;
  std::vector<PartitionId> own{{0, 1}};
  std::vector<std::string> topics{"mnist"};
};

}  // namespace

TEST_CASE("Announced: what fits is believed") {
  Round r;
  r.table.facts[0].interval = {{0, 0}, {10, 0}, {20, 0}, 7, 2, 0, 1};
  r.table.sections[0].runs = {{{0, 0}, {11, 0}, {13, 0}, 2, malformed},
                              {{0, 0}, {15, 0}, {16, 0}, 1, fate_hole}};
  r.table.facts[1].interval = {{0, 1}, {3, 0}, {4, 2}, 3, 0, 2, 0};
  r.table.sections[1].more_intervals = {{{0, 2}, {0, 0}, {1, 0}, 1, 0, 0, 0}};
  CHECK(r.check());
  CHECK_FALSE(only_offsets_move(r.table));
  CHECK(Announced(r.table, 1).account().intervals.size() == 2);
  CHECK(Announced(r.table, 2).account().intervals.empty());
}

TEST_CASE("Announced: what cannot be is refused, and the device is named") {
  Round r;
  auto& interval = r.table.facts[2].interval;
  SUBCASE("fewer than no holes, so that more rows than offsets add up") {
    const std::uint64_t minus_three = ~std::uint64_t{2};
    interval = {{0, 0}, {10, 0}, {17, 0}, 10, 0, 0, minus_three};
    r.table.sections[2].runs = {{{0, 0}, {10, 0}, {17, 0}, minus_three, fate_hole}};
    r.refuse("c announces rows of partition mnist:0 that do not account for every offset in the interval");
  }
  SUBCASE("runs that count up to what is said only beyond the largest number") {
    interval = {{0, 0}, {10, 0}, {17, 0}, 7, 0, 0, 0};
    const SkippedRange half{{0, 0}, {10, 0}, {17, 0}, std::uint64_t{1} << 63U, fate_hole};
    r.table.sections[2].runs = {half, half};
    r.refuse("c announces rows of partition mnist:0 that do not match the announced skipped ranges");
  }
  SUBCASE("rows of the state") {
    interval = {{0, 0}, {9, 0}, {12, 0}, 3, 0, 0, 0};
    r.refuse("c announces rows of partition mnist:0 that are already part of the state");
  }
  SUBCASE("a row left out") {
    interval = {{0, 0}, {11, 0}, {12, 0}, 1, 0, 0, 0};
    r.refuse("c announces rows of partition mnist:0 that leave a gap after the rows of the state");
  }
  SUBCASE("a row too few") {
    interval = {{0, 0}, {10, 0}, {12, 0}, 1, 0, 0, 0};
    r.refuse("c announces rows of partition mnist:0 that do not account for every offset in the interval");
  }
  SUBCASE("from before the first offset") {
    interval = {{0, 3}, {-2, 0}, {2, 0}, 4, 0, 0, 0};
    r.refuse("c announces rows of partition mnist:3 that begin at a negative offset");
  }
  SUBCASE("one partition too many") {
    for (std::uint32_t topic = 1; r.state.partitions.size() < partitions_max; ++topic)
      r.state.partitions[{topic, 0}] = {};
    interval = {{0, 3}, {0, 0}, {2, 0}, 2, 0, 0, 0};
    r.refuse("c announces rows of partition mnist:3 that exceed the maximum number of partitions of a job");
  }
  SUBCASE("backwards") {
    interval = {{0, 0}, {10, 0}, {9, 0}, 1, 0, 0, 0};
    r.refuse("c announces rows of partition mnist:0 that end before they begin");
  }
  SUBCASE("twice") {
    interval = r.table.facts[0].interval = {{0, 0}, {10, 0}, {12, 0}, 2, 0, 0, 0};
    r.refuse("c announces rows of partition mnist:0 that are announced twice");
  }
  SUBCASE("of this device") {
    interval = {{0, 1}, {10, 0}, {12, 0}, 2, 0, 0, 0};
    r.refuse("c announces rows of partition mnist:1 that belong to this device");
  }
  const std::string unexplained =
      "c announces rows of partition mnist:0 that do not match the announced skipped ranges";
  SUBCASE("drops without a reason") {
    interval = {{0, 0}, {10, 0}, {12, 0}, 1, 1, 0, 0};
    r.refuse(unexplained);
  }
  SUBCASE("a reason outside of the interval") {
    interval = {{0, 0}, {10, 0}, {12, 0}, 1, 1, 0, 0};
    r.table.sections[2].runs = {{{0, 0}, {12, 0}, {13, 0}, 1, malformed}};
    r.refuse(unexplained);
  }
  SUBCASE("a reason that nobody knows") {
    interval = {{0, 0}, {10, 0}, {12, 0}, 1, 1, 0, 0};
    r.table.sections[2].runs = {{{0, 0}, {11, 0}, {12, 0}, 1, 77}};
    r.refuse(unexplained);
  }
  SUBCASE("holes that are none") {
    interval = {{0, 0}, {10, 0}, {12, 0}, 2, 0, 0, 0};
    r.table.sections[2].runs = {{{0, 0}, {11, 0}, {12, 0}, 1, fate_hole}};
    r.refuse(unexplained);
  }
}

TEST_CASE("Announced: offsets move alone when nothing was trained") {
  Round r;
  CHECK_FALSE(only_offsets_move(r.table));
  r.table.facts[0].interval = {{0, 0}, {10, 0}, {12, 0}, 0, 2, 0, 0};
  CHECK(only_offsets_move(r.table));
}
