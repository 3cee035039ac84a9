// A group with a different plan in each round: nothing is lost or sent twice, all devices have the same
// state, and memory does not grow.
#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <map>

#include "tests/support/effort.h"
#include "tests/support/mass_run.h"

using namespace rivulet;
using namespace rivulet::testing;
using sync::policy::Mode;

namespace {

/// Summary of the drawn plans.
struct Seen {
  std::map<std::string, int> ways;  ///< of rounds that used their own facts for the decision, by collective
  std::map<std::string, int> entered;  ///< of the others
  std::map<Mode, int> modes;
  int calls = 0;  ///< early synchronizations
  int ahead = 0;  ///< rounds with steps made during the last synchronization
  int rounds = 0;
};

class Counting final : public runtime::DecisionLog {
 public:
  explicit Counting(Seen& seen) : seen_(seen) {}
  void write(std::uint64_t, std::uint64_t, const sync::FactsTable& table,
             const sync::policy::RoundPlan& plan) override {
    ++seen_.rounds;
    ++seen_.modes[plan.now.mode];
    const bool exchanges = plan.now.mode == Mode::gradients || plan.now.mode == Mode::delta;
    if (exchanges)
      ++(entered_.gated ? seen_.ways[plan.now.way.value().collective]
                        : seen_.entered[entered_.way.collective]);
    for (const auto& facts : table.facts) seen_.calls += (facts.flags & sync::flag_early) != 0 ? 1 : 0;
    for (const auto& section : table.sections) seen_.ahead += section.steps_ahead.empty() ? 0 : 1;
    entered_ = plan.next;
  }

 private:
  Seen& seen_;
  sync::policy::Schedule entered_;
};

/// Allocated bytes of the program; 0 if not counted.
double allocated() {
  const auto all = mallinfo2();
  return static_cast<double>(all.uordblks + all.hblkhd);
}

}  // namespace

TEST_CASE(
    "Soak: a plan drawn anew in each round loses nothing, parts no device from the others, and keeps "
    "nothing behind") {
  const int rounds = repetitions(1000, 10'000);
  Seen seen;
  MassRun run{.compressor = "drawn_rows", .rate = 0.5};
  run.when = "drawn_when";
  run.compression = "drawn_way";
  run.overlap = true;
  run.steps = static_cast<std::uint64_t>(rounds);
  run.rows = static_cast<std::size_t>(rounds) * 24;
  run.keeps_rounds = false;
  run.decisions = std::make_unique<Counting>(seen);
  std::vector<double> memory;  // a hundred times
  run.watch = [&](runtime::SimulatedGroup& group) {
    if (group.node(0).state().stamp.step * 100 >= (memory.size() + 1) * run.steps)
      memory.push_back(allocated());
    return false;
  };
  run_mass(run);
  CHECK(run.agreed);
  CHECK(run.views == 1);  // a different digest, or a group that waits forever, would end it
  CHECK(run.step == run.steps);
  const double bound = mass_rounding * rounds / 100;
  for (std::size_t device = 0; device < mass_world; ++device) CHECK(mass_off_by(run, device) < bound);
  for (const char* collective : {"gather", "two_sided", "sum", "shared_index"}) {
    CAPTURE(collective);
    CHECK(seen.ways[collective] > rounds / 80);
    CHECK(seen.entered[collective] > rounds / 80);
  }
  for (const Mode mode : {Mode::gradients, Mode::delta, Mode::defer}) CHECK(seen.modes[mode] > rounds / 20);
  CHECK(seen.calls > rounds / 20);
  CHECK(seen.ahead > rounds / 20);
  REQUIRE(memory.size() >= 99);
  // Compares the minimum of the first half and of the second: allocations in progress differ by this much.
  constexpr double by_chance = 64 * 1024;
  const double grown = *std::min_element(memory.begin() + 50, memory.end()) -
                       *std::min_element(memory.begin() + 10, memory.begin() + 50);
  CHECK(grown < by_chance);
  report_figure("soak.rounds", seen.rounds, "rounds");
  report_figure("soak.off_by", std::max({mass_off_by(run, 0), mass_off_by(run, 1), mass_off_by(run, 2)}),
                "of a row's weight");
  report_figure("soak.grown", grown, "bytes");
}
