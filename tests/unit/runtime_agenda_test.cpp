#include <doctest/doctest.h>

#include <set>
#include <utility>
#include <vector>

#include "core/rng.h"
#include "runtime/wiring/agenda.h"

using namespace rivulet;
using namespace rivulet::runtime;

TEST_CASE("Agenda: nobody is due before somebody said so") {
  Agenda agenda;
  CHECK(agenda.earliest() == TimePoint::max());
  const std::uint32_t only = agenda.add();
  CHECK(agenda.earliest() == TimePoint::max());
  CHECK(agenda.first() == only);
  agenda.set(only, TimePoint(Duration(7)));
  CHECK(agenda.earliest() == TimePoint(Duration(7)));
  agenda.set(only, TimePoint::max());
  CHECK(agenda.earliest() == TimePoint::max());
}

TEST_CASE("Agenda: at every moment the earliest is first, of those the lowest number, also while it grows") {
  Rng rng(11);
  Agenda agenda;
  std::vector<TimePoint> due;
  std::set<std::pair<TimePoint, std::uint32_t>> sorted;
  int wrong = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (due.size() < 600 && rng.below(4) == 0) {  // grows beyond 8, 64 and 512
      wrong += agenda.add() == due.size() ? 0 : 1;
      due.push_back(TimePoint::max());
    }
    if (due.empty()) continue;
    const auto number = static_cast<std::uint32_t>(rng.below(due.size()));
    sorted.erase({due[number], number});
    // Few different times, so that many are equal.
    due[number] = rng.below(3) == 0 ? TimePoint::max() : TimePoint(Duration(rng.below(200)));
    if (due[number] != TimePoint::max()) sorted.emplace(due[number], number);
    agenda.set(number, due[number]);
    wrong += agenda.of(number) == due[number] ? 0 : 1;
    wrong += agenda.earliest() == (sorted.empty() ? TimePoint::max() : sorted.begin()->first) ? 0 : 1;
    if (!sorted.empty()) wrong += agenda.first() == sorted.begin()->second ? 0 : 1;
  }
  CHECK(due.size() == 600);
  CHECK(wrong == 0);
}
