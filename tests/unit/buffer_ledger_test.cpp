// The ledger of a stream: rows and the offsets between them form one chain, and every piece balances.
#include "buffer/ledger.h"

#include <doctest/doctest.h>

#include "core/rng.h"

using namespace rivulet;
using buffer::Account;
using buffer::Cursors;
using buffer::Ledger;

namespace {

constexpr PartitionId p0{0, 0};
constexpr PartitionId p1{0, 1};
constexpr auto malformed = static_cast<std::uint32_t>(DropReason::malformed);
constexpr auto bad_label = static_cast<std::uint32_t>(DropReason::bad_label);
constexpr auto nonfinite = static_cast<std::uint32_t>(DropReason::nonfinite_batch);

RowTag row(PartitionId p, RowCursor at, RowCursor next) {
  return {{p, at}, next};
}
RowTag row(PartitionId p, std::int64_t offset) {
  return row(p, {offset, 0}, {offset + 1, 0});
}

Account account(Ledger& ledger, const std::vector<RowTag>& rows, const Cursors& stands = {}) {
  auto made = ledger.account(rows, stands, 0);
  REQUIRE_MESSAGE(made, made.error().message);
  return std::move(made).value();
}

}  // namespace

TEST_CASE("Ledger: rows of two partitions, drops, holes and parts of records add up to the offsets") {
  Ledger ledger;
  ledger.began(p0, {7, 1});
  ledger.began(p1, {38, 0});
  ledger.passed({p1, {38, 0}, {40, 0}, 2, malformed});
  ledger.passed({p0, {8, 0}, {11, 0}, 3, fate_hole});
  ledger.passed({p1, {41, 0}, {43, 0}, 2, malformed});
  ledger.passed({p1, {43, 0}, {44, 0}, 1, fate_hole});
  const Account a = account(
      ledger, {row(p1, 40), row(p0, {7, 1}, {7, 2}), row(p0, {7, 2}, {8, 0}), row(p1, 44), row(p0, 11)});
  REQUIRE(a.intervals.size() == 2);
  CHECK(a.intervals[0] == RowInterval{p0, {7, 1}, {12, 0}, 3, 0, 1, 3});
  CHECK(a.intervals[1] == RowInterval{p1, {38, 0}, {45, 0}, 2, 4, 0, 1});
  for (const auto& interval : a.intervals) CHECK(interval.adds_up());
  CHECK(a.runs.size() == 4);
}

TEST_CASE("Ledger: a partition that nobody knows begins at the lowest place it was ever read from") {
  Ledger ledger;
  ledger.began(p0, {744, 0});
  ledger.began(p0, {654, 2});  // start of an abandoned state
  ledger.began(p0, {744, 0});
  CHECK(ledger.begins() == Cursors{{p0, {654, 2}}});
  const std::vector rows{row(p0, {654, 2}, {655, 0})};
  CHECK(ledger.account(rows, {}, 0));
  CHECK_FALSE(ledger.account(std::vector{row(p0, 744)}, {}, 0));
  CHECK(ledger.account(std::vector{row(p0, 744)}, {{p0, {744, 0}}}, 0));  // the group's position comes first
}

TEST_CASE("Ledger: a partition of only dropped rows is announced without a row") {
  Ledger ledger;
  ledger.began(p0, {0, 0});
  for (std::int64_t i = 0; i < 100; ++i) ledger.passed({p0, {i, 0}, {i + 1, 0}, 1, malformed});
  const Account a = account(ledger, {});
  REQUIRE(a.intervals.size() == 1);
  CHECK(a.intervals[0] == RowInterval{p0, {0, 0}, {100, 0}, 0, 100, 0, 0});
  CHECK(a.runs == std::vector<SkippedRange>{{p0, {0, 0}, {100, 0}, 100, malformed}});
}

TEST_CASE("Ledger: the first records of a window and rows whose label never came are passed in their order") {
  constexpr auto context = static_cast<std::uint32_t>(DropReason::context);
  constexpr auto expired = static_cast<std::uint32_t>(DropReason::expired);
  Ledger ledger;
  ledger.began(p0, {10, 0});
  ledger.passed({p0, {10, 0}, {13, 0}, 3, context});  // of a window of four records
  ledger.passed({p0, {14, 0}, {15, 0}, 1, expired});
  const Account a = account(ledger, {row(p0, 13), row(p0, 15)});
  CHECK(a.intervals == std::vector{RowInterval{p0, {10, 0}, {16, 0}, 2, 4, 0, 0}});
  CHECK(a.runs ==
        std::vector<SkippedRange>{{p0, {10, 0}, {13, 0}, 3, context}, {p0, {14, 0}, {15, 0}, 1, expired}});
  // An open skipped range delays the rows after it: they are not announced yet.
  Ledger open;
  open.began(p0, {0, 0});
  CHECK(account(open, {row(p0, 0)}).intervals.front().next == RowCursor{1, 0});
  CHECK_FALSE(open.account(std::vector{row(p0, 0), row(p0, 2)}, {}, 0));
}

TEST_CASE("Ledger: what was announced and failed is announced again; what was settled is not") {
  Ledger ledger;
  ledger.began(p0, {0, 0});
  ledger.passed({p0, {0, 0}, {2, 0}, 2, malformed});
  CHECK(account(ledger, {}).intervals[0].next == RowCursor{2, 0});
  ledger.passed({p0, {2, 0}, {5, 0}, 3, malformed});  // after a border that others may have seen
  CHECK(account(ledger, {}).intervals[0] == RowInterval{p0, {0, 0}, {5, 0}, 0, 5, 0, 0});
  CHECK(account(ledger, {}, {{p0, {2, 0}}}).intervals[0] == RowInterval{p0, {2, 0}, {5, 0}, 0, 3, 0, 0});
  ledger.prune({{p0, {5, 0}}});
  CHECK(account(ledger, {}, {{p0, {5, 0}}}).intervals.empty());
}

TEST_CASE("Ledger: a row that is not the next one is an error that names both places") {
  Ledger ledger;
  ledger.began(p0, {0, 0});
  const std::vector<RowTag> rows{row(p0, 0), row(p0, 2)};
  const auto made = ledger.account(rows, {}, 0);
  REQUIRE_FALSE(made);
  CHECK(made.error().message == "partition 0: expected the next row at 1, got one at 2");
}

TEST_CASE("Ledger: runs of a generation that is over count nothing") {
  Ledger ledger;
  ledger.began(p0, {0, 0});
  ledger.passed({p0, {0, 0}, {3, 0}, 3, malformed});
  const auto early = ledger.account({}, {{p0, {0, 0}}}, 1);  // requested before the reader has seeked
  REQUIRE(early);
  CHECK(early.value().intervals.empty());
  ledger.restart({1, {{p0, RowCursor{0, 0}}}});
  ledger.passed({p0, {0, 0}, {1, 0}, 1, bad_label});
  const auto made = ledger.account({}, {{p0, {0, 0}}}, 1);
  REQUIRE(made);
  CHECK(made.value().runs == std::vector<SkippedRange>{{p0, {0, 0}, {1, 0}, 1, bad_label}});
  CHECK(ledger.begins() == Cursors{{p0, {0, 0}}});
}

TEST_CASE("Ledger: it says where runs end and whether a place lies within one") {
  Ledger ledger;
  ledger.passed({p0, {4, 0}, {6, 0}, 2, malformed});
  ledger.passed({p0, {6, 0}, {7, 0}, 1, fate_hole});
  CHECK(ledger.behind_runs(p0, {4, 0}) == RowCursor{7, 0});
  CHECK(ledger.behind_runs(p0, {5, 0}) == RowCursor{5, 0});
  CHECK(ledger.behind_runs(p1, {4, 0}) == RowCursor{4, 0});
  CHECK(ledger.splits(p0, {5, 0}));
  CHECK_FALSE(ledger.splits(p0, {6, 0}));
  CHECK_FALSE(ledger.splits(p0, {4, 0}));
}

TEST_CASE("Ledger: it asks the reader to wait when it is full") {
  Ledger ledger;
  CHECK(ledger.has_room());
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(Ledger::runs_max); ++i)
    ledger.passed({p0, {i, 0}, {i + 1, 0}, 1, i % 2 == 0 ? malformed : bad_label});
  CHECK_FALSE(ledger.has_room());
  ledger.prune({{p0, {10, 0}}});
  CHECK(ledger.has_room());
}

TEST_CASE("Runs: touching ones of a fate are one; above the bound the counts stay exact") {
  std::vector<SkippedRange> runs;
  buffer::add_run(runs, {p0, {0, 0}, {2, 0}, 2, malformed}, 4);
  buffer::add_run(runs, {p0, {2, 0}, {3, 0}, 1, malformed}, 4);
  CHECK(runs == std::vector<SkippedRange>{{p0, {0, 0}, {3, 0}, 3, malformed}});
  std::map<std::uint32_t, std::uint64_t> counted{{malformed, 3}};
  Rng rng(3);
  for (std::int64_t i = 0; i < 200; ++i) {
    const std::uint32_t fate = rng.below(2) == 0 ? malformed : bad_label;
    buffer::add_run(runs, {p0, {10 + 2 * i, 0}, {11 + 2 * i, 0}, 1, fate}, 4);
    counted[fate] += 1;
    REQUIRE(runs.size() <= 4);
  }
  for (const auto& run : runs) counted[run.fate] -= run.rows;
  CHECK(counted == std::map<std::uint32_t, std::uint64_t>{{malformed, 0}, {bad_label, 0}});
}

TEST_CASE("Accounts: one that does not touch the last is refused; trained rows become dropped ones") {
  Account pending;
  pending.intervals = {{p0, {0, 0}, {4, 0}, 3, 1, 0, 0}};
  pending.runs = {{p0, {1, 0}, {2, 0}, 1, malformed}};
  Account later;
  later.intervals = {{p0, {5, 0}, {6, 0}, 1, 0, 0, 0}};
  const auto refused = buffer::append(pending, later);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "partition 0: expected the next row at 4, got one at 5");
  later.intervals = {{p0, {4, 0}, {6, 0}, 2, 0, 0, 0}, {p1, {9, 0}, {9, 3}, 3, 0, 3, 0}};
  REQUIRE(buffer::append(pending, later));
  CHECK(pending.intervals ==
        std::vector<RowInterval>{{p0, {0, 0}, {6, 0}, 5, 1, 0, 0}, {p1, {9, 0}, {9, 3}, 3, 0, 3, 0}});
  buffer::drop_trained(pending);
  CHECK(pending.intervals[0] == RowInterval{p0, {0, 0}, {6, 0}, 0, 6, 0, 0});
  CHECK(pending.runs.back() == SkippedRange{p1, {9, 0}, {9, 3}, 3, nonfinite});
  for (const auto& interval : pending.intervals) CHECK(interval.adds_up());
}
