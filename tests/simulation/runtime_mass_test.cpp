// No part of a contribution is lost or sent twice, with any compression and under failures. The model counts
// rows in its parameters: each row has a parameter with its weight in the agreed state. The expected value is
// computed in double from the decision log alone.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/effort.h"
#include "tests/support/mass_run.h"
#include "tests/support/parts/policy/compressed.h"

using namespace rivulet;
using namespace rivulet::testing;

TEST_CASE("Mass: whatever a compressor leaves out comes later, all of it and once") {
  for (const char* compressor : {"exact_topk", "coarse_topk"}) {
    INFO(compressor);
    MassRun run{.compressor = compressor};
    run_mass(run);
    CHECK(run.agreed);
    CHECK(run.step == compressed_steps + 10);
    CHECK(run.early_used > 10);
    double most = 0;
    for (const double x : run.expected) most = std::min(most, x);
    CHECK(most == doctest::Approx(-1.0 / 21));
    for (std::size_t device = 0; device < mass_world; ++device)
      CHECK(mass_off_by(run, device) < mass_rounding);
  }
}

TEST_CASE("Mass: of movements behind own steps, too, and nothing is sent between them") {
  for (const char* compressor : {"exact_topk", "coarse_topk"}) {
    INFO(compressor);
    MassRun run{.compressor = compressor, .local_steps = 3};
    SUBCASE("every device has rows") {}
    SUBCASE("one runs out of rows") {
      run.rows_of_last = 100;
    }
    run_mass(run);
    CHECK(run.agreed);
    CHECK(run.early_used > 5);
    std::size_t deltas = 0;
    for (const RecordedRound& round : run.rounds) {
      CHECK(round.plan.now.mode != sync::policy::Mode::gradients);
      if (round.plan.now.mode != sync::policy::Mode::delta) continue;
      ++deltas;
      if (round.table.facts[0].rows == 21)
        CHECK(round.table.sections[0].step_rows == std::vector<std::uint32_t>{7, 7, 7});
    }
    CHECK(deltas > 20);
    for (std::size_t device = 0; device < mass_world; ++device)
      CHECK(mass_off_by(run, device) < mass_rounding);
  }
}

TEST_CASE(
    "Mass: of steps that go on while the group agrees, around a view that is lost meanwhile, and a kill") {
  for (const char* collective : {"gather", "two_sided"})
    for (const int sends : {0, 2 * 11, 2 * 12, 2 * 17}) {
      CAPTURE(collective);
      CAPTURE(sends);
      MassRun run{.local_steps = 3, .collective = collective, .overlap = true, .deaf_after = sends};
      const bool kills = sends == 2 * 17;
      if (kills)
        run.faults = {{.at_s = 0.08, .kind = runtime::Fault::Kind::kill, .device = 1},
                      {.at_s = 0.6, .kind = runtime::Fault::Kind::start, .device = 1}};
      run_mass(run);
      CHECK((sends == 0 || run.views >= 2));
      CHECK(run.agreed);
      CHECK(run.step == run.steps);
      std::size_t ahead = 0;
      for (const RecordedRound& round : run.rounds)
        for (const auto& section : round.table.sections)
          if (!section.steps_ahead.empty()) ahead += section.steps_ahead.front();
      CHECK(ahead > 60);
      for (std::size_t device = 0; device < mass_world; ++device)
        if (!kills || device != 1) CHECK(mass_off_by(run, device) < 4 * mass_rounding);
    }
}

TEST_CASE(
    "Mass: of slices that their owners compress again, too, around a view that is lost in either step") {
  for (const std::int64_t local_steps : {0, 1, 3})
    for (const auto& [lane, sends] : {std::pair{sync::Lane::facts, 0}, std::pair{sync::Lane::sum, 2 * 7},
                                      std::pair{sync::Lane::phase, 2 * 7}}) {
      CAPTURE(local_steps);
      INFO("sends: ", sends);
      MassRun run{.local_steps = local_steps, .collective = "two_sided", .lane = lane, .deaf_after = sends};
      run_mass(run);
      CHECK(run.deaf_after <= 0);
      CHECK((sends == 0 || run.views >= 2));
      CHECK(run.agreed);
      for (std::size_t device = 0; device < mass_world; ++device)
        CHECK(mass_off_by(run, device) < 4 * mass_rounding);
    }
}

TEST_CASE("Mass: a device that leaves a group that goes on has sent all that it had kept") {
  for (const std::int64_t local_steps : {0, 3}) {
    CAPTURE(local_steps);
    MassRun run{.local_steps = local_steps, .elastic = true};
    run.watch = [](runtime::SimulatedGroup& group) {
      if (group.node(0).state().stamp.step == 20) group.request_leave(2);
      return false;
    };
    run_mass(run);
    CHECK(run.views == 2);
    CHECK(run.step == run.steps);
    const auto flushes = [](const RecordedRound& round) { return round.plan.next.flush; };
    CHECK(std::ranges::count_if(run.rounds, flushes) == 1);
    for (std::size_t device = 0; device < mass_world; ++device)
      CHECK(mass_off_by(run, device) < 4 * mass_rounding);
  }
}

TEST_CASE("Mass: of gradients and movements by turns, around a view that is lost in either") {
  for (const char* collective : {"gather", "two_sided"})
    for (const int sends : {0, 2 * 11, 2 * 12, 2 * 13}) {
      CAPTURE(collective);
      CAPTURE(sends);
      MassRun run{.collective = collective, .both_ways = true, .rate = 0.5, .deaf_after = sends};
      run_mass(run);
      CHECK(run.deaf_after <= 0);
      CHECK((sends == 0 || run.views >= 2));
      CHECK(run.agreed);
      std::size_t deltas = 0;
      std::size_t gradients = 0;
      for (const RecordedRound& round : run.rounds) {
        deltas += round.plan.now.mode == sync::policy::Mode::delta ? 1 : 0;
        gradients += round.plan.now.mode == sync::policy::Mode::gradients ? 1 : 0;
      }
      CHECK(deltas > 10);
      CHECK(gradients > 10);
      for (std::size_t device = 0; device < mass_world; ++device)
        CHECK(mass_off_by(run, device) < 4 * mass_rounding);
    }
}

TEST_CASE("Mass: own steps survive a view that is lost, unless others have agreed about them") {
  for (const auto& [lane, sends] :
       {std::pair{sync::Lane::facts, 2 * 12}, std::pair{sync::Lane::payload, 2 * 3}}) {
    INFO("sends: ", sends);
    MassRun run{.local_steps = 3, .lane = lane, .deaf_after = sends};
    run_mass(run);
    CHECK(run.deaf_after <= 0);
    CHECK(run.views >= 2);
    CHECK(run.agreed);
    for (std::size_t device = 0; device < mass_world; ++device)
      CHECK(mass_off_by(run, device) < mass_rounding);
  }
}

TEST_CASE("Mass: weights that nobody could foresee, and a device that has nothing left but what it kept") {
  for (const char* compressor : {"exact_topk", "coarse_topk"}) {
    INFO(compressor);
    MassRun run{.compressor = compressor, .rows_of_last = 100};  // a little over fourteen batches
    run_mass(run);
    CHECK(run.agreed);
    CHECK(run.early_used > 10);
    bool without_rows = false;
    for (const auto& round : run.rounds)
      without_rows = without_rows || (round.table.facts[0].rows == 7 && round.table.facts[2].rows == 0);
    CHECK(without_rows);
    for (std::size_t device = 0; device < mass_world; ++device)
      CHECK(mass_off_by(run, device) < mass_rounding);
  }
}

TEST_CASE(
    "Mass: a compressor that forgets loses what it leaves out, and no row's share more than a bit of it") {
  MassRun run{.compressor = "halves"};
  run_mass(run);
  CHECK(run.agreed);
  CHECK(run.early_used > 10);
  CHECK(mass_off_by(run, 0) > mass_rounding);
  CHECK(mass_off_by(run, 0) < 1.0 / 21 / 128);
}

TEST_CASE("Mass: a device that missed the end of a round that the others applied sends nothing of it again") {
  // Sends of device 1, to two peers in each round. With the facts from the fifth round on; until then after
  // them.
  for (const auto& [lane, sends] :
       {std::pair{sync::Lane::facts, 2 * 15}, std::pair{sync::Lane::payload, 2 * 3}}) {
    INFO("sends: ", sends);
    MassRun run{.lane = lane, .deaf_after = sends};
    run_mass(run);
    CHECK(run.deaf_after <= 0);
    CHECK(run.views >= 2);
    CHECK(run.agreed);
    for (std::size_t device = 0; device < mass_world; ++device)
      CHECK(mass_off_by(run, device) < mass_rounding);
  }
}

TEST_CASE("Mass: of a device that is killed nothing is sent twice, and of the others nothing is lost") {
  MassRun run{.compressor = "coarse_topk",
              .faults = {{.at_s = 0.08, .kind = runtime::Fault::Kind::kill, .device = 1},
                         {.at_s = 0.6, .kind = runtime::Fault::Kind::start, .device = 1}}};
  run_mass(run);
  CHECK(run.views >= 2);
  CHECK(run.agreed);
  CHECK(mass_off_by(run, 0) < mass_rounding);
  CHECK(mass_off_by(run, 2) < mass_rounding);
  const auto& expected = run.expected;
  for (std::size_t i = mass_rows; i < 2 * mass_rows; ++i) {
    CHECK(run.parameters[i] <= mass_rounding);
    CHECK(double{run.parameters[i]} >= expected[i] - mass_rounding);
  }
}

TEST_CASE("Mass: own steps of a device that is killed are made again, and of the others nothing is lost") {
  MassRun run{.compressor = "coarse_topk",
              .local_steps = 3,
              .faults = {{.at_s = 0.08, .kind = runtime::Fault::Kind::kill, .device = 1},
                         {.at_s = 0.6, .kind = runtime::Fault::Kind::start, .device = 1}}};
  run_mass(run);
  CHECK(run.views >= 2);
  CHECK(run.agreed);
  CHECK(mass_off_by(run, 0) < mass_rounding);
  CHECK(mass_off_by(run, 2) < mass_rounding);
}

TEST_CASE("Mass: over thousands of rounds with kills, lost views, changes of mode and a slow device") {
  const int rounds = repetitions(2'000, 10'000);
  MassRun run{.compressor = "many_modes", .both_ways = true, .rate = 0.5};
  SUBCASE("gather") {}
  SUBCASE("two_sided") {
    run.collective = "two_sided";
  }
  run.deaf_after = run.deaf_again = 2 * 83;
  run.steps = static_cast<std::uint64_t>(rounds);
  run.rows = static_cast<std::size_t>(rounds) * 14;
  run.slow_last = true;
  const int kills = rounds / 100;
  for (int i = 0; i < kills; ++i) {
    run.faults.push_back({.at_s = 0.5 * i + 0.2, .kind = runtime::Fault::Kind::kill, .device = 1});
    run.faults.push_back({.at_s = 0.5 * i + 0.3, .kind = runtime::Fault::Kind::start, .device = 1});
  }
  run_mass(run);
  CHECK(run.agreed);
  CHECK(run.step == run.steps);
  CHECK(run.views > static_cast<std::uint64_t>(2 * kills));
  // An element is added to about fifty times, each time with the mass_rounding of a float.
  const double bound = mass_rounding * rounds / 100;
  CHECK(mass_off_by(run, 0) < bound);
  CHECK(mass_off_by(run, 2) < bound);
  const auto& expected = run.expected;
  double lost = 0;
  for (std::size_t i = mass_rows; i < 2 * mass_rows; ++i) {
    CHECK(double{run.parameters[i]} >= expected[i] - bound);
    lost += double{run.parameters[i]} - expected[i];
  }
  // Only the residual of the killed device is lost: less than its share of seventy-five rounds.
  CHECK(lost > 1);
  CHECK(lost < kills * 75 * run.rate / 3);
  report_figure("mass.rounds", static_cast<double>(run.rounds.size()), "rounds");
  report_figure("mass.views", static_cast<double>(run.views), "views");
  report_figure("mass.off_by", mass_off_by(run, 0), "of a row's weight");
  report_figure("mass.lost_by_kills", lost, "steps of all rows");
}

TEST_CASE("Memory of controllers: goes on from the agreed state in the next view, however that begins") {
  MassRun run{.compressor = "ratchet", .lane = sync::Lane::payload, .deaf_after = 2 * 3};
  run_mass(run);
  CHECK(run.agreed);
  CHECK(run.views >= 2);
  // Only rounds that ended in a step count. A deferred round, or one that its view did not finish, is counted
  // again later; the fifth never is.
  std::vector<std::string> said;
  std::uint64_t applied = 0;
  for (const RecordedRound& round : run.rounds) {
    if (!round.plan.why.starts_with("round ")) continue;
    said.push_back(round.plan.why);
    applied += round.plan.now.mode == sync::policy::Mode::gradients ? 1 : 0;
  }
  REQUIRE(said.size() > 10);
  CHECK(said.front() == "round 1");
  const auto ratchet =
      std::ranges::find(run.remembered, "batch/ratchet", &sync::policy::ControllerMemory::name);
  REQUIRE(ratchet != run.remembered.end());
  // Every fifth round of a view is deferred; all others made a step.
  CHECK(ratchet->values == std::vector<double>{std::stod(said.back().substr(6))});
  CHECK(run.step >= applied);
  std::size_t first_of_second = 0;
  for (std::size_t i = 1; i < run.rounds.size() && first_of_second == 0; ++i)
    if (run.rounds[i].round < run.rounds[i - 1].round) first_of_second = i;
  REQUIRE(first_of_second > 0);
  bool went_on = false;
  for (std::size_t i = first_of_second; i < run.rounds.size() && !went_on; ++i)
    if (run.rounds[i].plan.why.starts_with("round ")) went_on = run.rounds[i].plan.why != "round 1";
  CHECK(went_on);
}

TEST_CASE("Mass: of a device that leaves nothing is lost where rounds are decided with their facts") {
  MassRun run{.compressor = "even_rows", .steps = 40, .rows = 6'000};
  run.when = "every";
  run.compression = "two-point";
  run.watch = [&](runtime::SimulatedGroup& group) {
    if (group.node(2).state().stamp.step >= 20) group.request_leave(2);
    return group.node(2).worker().ended();
  };
  run_mass(run);
  REQUIRE(run.rounds.back().plan.now.leaving == std::vector<std::uint32_t>{2});
  CHECK(run.rounds.back().plan.now.way.value().compressor == "dense");
  CHECK(run.rounds.at(10).plan.now.way.value().compressor == "topk");
  for (std::size_t device = 0; device < mass_world; ++device) CHECK(mass_off_by(run, device) < mass_rounding);
}
