// A table of facts is used only if all facts are of one round of one view, with the same plan.
#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <string>

#include "sync/round/facts_exchange.h"

using namespace rivulet;
using namespace rivulet::sync;

namespace {

constexpr std::uint32_t me = 1;

ViewSpec view_of_three() {
  ViewSpec view;
  view.number = 4;
  view.token = 40;
  view.members = std::vector<std::string>{"a", "b", "c"};
  view.rank = me;
  return view;
}

/// Consistent facts of three devices: view 40, round 7, step 6, plan 99.
FactsTable agreed() {
  FactsTable table;
  table.facts.resize(3);
  table.sections.resize(3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    Facts& f = table.facts[rank];
    f.view = 40;
    f.round = 7;
    f.step = 6;
    f.rank = rank;
    f.plan_hash = 99;
  }
  return table;
}

/// The error for the consistent table with one device's facts changed; "none" if accepted.
std::string said_of(std::uint32_t rank, const std::function<void(Facts&)>& change) {
  FactsTable table = agreed();
  change(table.facts[rank]);
  const Status checked = check_table(table, view_of_three());
  return checked ? "none" : std::string(name_of(checked.error().code)) + ": " + checked.error().message;
}

}  // namespace

TEST_CASE("Facts table: of one view, round, step and plan it is taken") {
  CHECK(said_of(0, [](Facts&) {}) == "none");
  CHECK(said_of(2, [](Facts& f) { f.rows = 5; }) == "none");
}

TEST_CASE("Facts table: who is elsewhere is named, with where both are") {
  for (const std::uint32_t rank : {0U, 2U}) {
    CAPTURE(rank);
    const std::string who = rank == 0 ? "protocol: a is at " : "protocol: c is at ";
    CHECK(said_of(rank, [](Facts& f) { f.view = 41; }) == who + "view 41, this device at 40");
    CHECK(said_of(rank, [](Facts& f) { f.round = 8; }) == who + "round 8, this device at 7");
    CHECK(said_of(rank, [](Facts& f) { f.step = 5; }) == who + "step 5, this device at 6");
    CHECK(said_of(rank, [](Facts& f) { f.plan_hash = 98; }) == who + "plan 98, this device at 99");
    CHECK(said_of(rank, [](Facts& f) { f.rank = 1; }) ==
          who + "rank 1, this device at " + std::to_string(rank));
  }
}

TEST_CASE("Facts table: a rate or a time that cannot be is refused with its device") {
  for (const double wrong :
       {-1.0F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    CAPTURE(wrong);
    for (float Facts::* field :
         {&Facts::stream_rate, &Facts::compute_seconds, &Facts::wait_seconds, &Facts::sync_seconds})
      CHECK(said_of(2, [&](Facts& f) { f.*field = wrong; }) ==
            "protocol: c sent a rate or a time that is negative or not finite");
  }
}

TEST_CASE("Facts table: digests that differ are another kind of error") {
  const auto with_digest = [](FactsTable& table, std::uint32_t rank, std::uint64_t low) {
    table.facts[rank].flags |= flag_digest;
    table.facts[rank].digest = {low, 0};
  };
  FactsTable table = agreed();
  for (std::uint32_t rank = 0; rank < 3; ++rank) with_digest(table, rank, 5);
  CHECK(check_table(table, view_of_three()));
  with_digest(table, 2, 6);
  const Status checked = check_table(table, view_of_three());
  REQUIRE_FALSE(checked);
  CHECK(checked.error().code == ErrorCode::diverged);
}
