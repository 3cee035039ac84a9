// Nothing that a device contributes is lost or sent twice, however it is compressed and whatever breaks: the
// model counts rows in its parameters, so that every row has a number of its own that says how much of it is
// in the agreed state, and what that must be is added up in double from the decision log alone.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "tests/support/effort.h"
#include "tests/support/group_support.h"
#include "tests/support/parts/parts.h"
#include "tests/support/parts/policy/compressed.h"
#include "tests/support/parts/policy/many_modes.h"
#include "tests/support/real_node.h"
#include "tests/support/wrapped_transport.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

constexpr std::size_t rows_of_a_device = 1200;
constexpr std::uint32_t world = 3;

/// Wires of one device that go deaf when it has sent on `lane` for the `last` time: whoever it sent to has
/// that and goes on, itself it hears nothing any more.
struct Deaf : WrappedTransport {
  Deaf(std::unique_ptr<sync::Transport> transport, sync::Lane lane, int& sends_left)
      : WrappedTransport(std::move(transport)), lane_(lane), sends_left_(sends_left) {}
  sync::Ticket send(std::uint32_t peer, sync::Lane lane, std::span<const std::byte> bytes) override {
    const auto ticket = inner->send(peer, lane, bytes);
    if (lane == lane_ && --sends_left_ == 0) deaf_ = true;
    return ticket;
  }
  Progress poll(sync::Ticket ticket) override {
    if (!deaf_) return inner->poll(ticket);
    return ++polls_ > 20 ? Progress::failed : Progress::pending;  // its last words get there
  }
  bool wait(sync::Ticket ticket) override { return !deaf_ && inner->wait(ticket); }
  bool healthy() override { return polls_ <= 20 && inner->healthy(); }
  [[nodiscard]] const Error& error() const override { return deaf_ ? error_ : inner->error(); }
  [[nodiscard]] int lost_rank() const noexcept override { return deaf_ ? 0 : inner->lost_rank(); }

 private:
  const sync::Lane lane_;
  int& sends_left_;
  bool deaf_ = false;
  int polls_ = 0;
  const Error error_{ErrorCode::peer_lost, "planted: nothing is heard any more"};
};

struct MassRun {
  std::string compressor = "exact_topk";
  std::int64_t own_steps = 0;  ///< of each device before the group agrees; 0: it agrees after every batch
  std::string collective = "gather";
  bool both_ways = false;  ///< gradients and movements by turns
  bool overlap = false;    ///< own steps go on while the group agrees, which takes longer than one of them
  double rate = 1;         ///< of learning
  sync::Lane lane = sync::Lane::facts;
  int deaf_after = 0;  ///< sends of device 1 on the lane; 0: never
  int deaf_again = 0;  ///< ... and after so many of each further view; 0: not
  std::uint64_t steps = compressed_steps + 10;
  std::size_t rows = rows_of_a_device;  ///< of each device; beyond rows_of_a_device their numbers come again
  std::size_t rows_of_last = rows_of_a_device;
  bool slow_last = false;  ///< the last device's link has a tenth of the others' bandwidth
  std::vector<runtime::Fault> faults;
  std::vector<RecordedRound> rounds;  ///< as device 0 saw them
  std::vector<float> parameters;
  std::uint64_t views = 0;
  std::uint64_t step = 0;
  std::uint64_t early_used = 0;
  std::vector<sync::policy::ControllerMemory> remembered;
  bool agreed = true;
};

runtime::LoadedConfig counting_job(const MassRun& run) {
  auto job = linear_job(world);
  auto& c = job.config;
  c.batch.policy = run.compressor;
  if (run.own_steps > 0) c.sync.policy = "periodic";
  c.settings.set("sync.own_steps", std::max<std::int64_t>(run.own_steps, 1));
  c.settings.set("sync.overlap", std::string(run.overlap ? "always" : "auto"));
  if (run.both_ways) c.sync.policy = "both_ways";
  c.sync.collective = run.collective;
  c.model.name = "tally";
  c.model.classes = world * rows_of_a_device / 9;  // numbers as many as rows: a slice is of one device's
  c.train.lr = run.rate;
  c.settings.set("train.optimizer.momentum", 0.0);
  dense_from = run.steps - 10;
  c.sync.on_peer_loss = "reform";
  return job;
}

std::vector<std::byte> numbered_row(std::size_t device, std::size_t index) {
  std::array<float, 9> numbers{};  // a label and eight features
  numbers[1] = static_cast<float>(device * rows_of_a_device + index % rows_of_a_device);
  const auto bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}

void run_mass(MassRun& run) {
  const PartsCatalog parts;
  runtime::SimulatedParts outside;
  outside.catalog = parts.catalog();
  outside.apart = true;
  outside.source = [&](std::size_t device, const Clock& clock) {
    return prepared_source(
        device, device + 1 == world && run.rows_of_last < rows_of_a_device ? run.rows_of_last : run.rows,
        [=](std::size_t i) { return numbered_row(device, i); }, clock);
  };
  outside.decisions = [&](std::size_t device) -> std::unique_ptr<runtime::DecisionLog> {
    if (device == 0) return std::make_unique<RecordingDecisions>(run.rounds);
    return runtime::make_null_decision_log();
  };
  if (run.deaf_after > 0)
    outside.wires = [&](std::size_t device, sync::Connect usual) -> sync::Connect {
      if (device != 1) return usual;
      return [&run, usual = std::move(usual)](const sync::ViewSpec& spec, sync::AddressBook& book,
                                              Wake& wake) -> Result<std::unique_ptr<sync::Transport>> {
        auto inner = usual(spec, book, wake);
        if (!inner) return inner.error();
        if (run.deaf_again > 0 && run.deaf_after <= 0) run.deaf_after = run.deaf_again;
        return std::unique_ptr<sync::Transport>(
            std::make_unique<Deaf>(std::move(inner).value(), run.lane, run.deaf_after));
      };
    };
  runtime::SimulateOptions options;
  options.stop_after.rounds = run.steps;
  options.link = {std::chrono::milliseconds(1), 1e8};
  if (run.overlap) options.profile = {std::chrono::microseconds(600), 1e6};
  options.faults = run.faults;
  if (run.slow_last) options.own_links = {{{}, 1e8}, {{}, 1e8}, {{}, 1e7}};
  auto group = build_group(counting_job(run), options, std::move(outside));
  run_to_end(*group);
  auto& state = group->node(0).state();
  const auto p = state.model.parameters().as<float>();
  run.parameters.assign(p.begin(), p.end());
  run.step = state.stamp.step;
  run.views = state.stamp.lineage;
  run.remembered = state.controllers;
  run.early_used = group->node(0).status().early_used.load();
  for (std::size_t i = 1; i < group->size(); ++i) {
    const auto q = group->node(i).state().model.parameters().as<float>();
    run.agreed = run.agreed && std::equal(p.begin(), p.end(), q.begin(), q.end());
  }
}

/// What the parameters must be: of each applied round one part in all its rows for each of them. An own step
/// moves by one part in its own rows, and the movement counts by the rows of all own steps.
std::vector<double> oracle(const MassRun& run) {
  std::vector<double> expected(run.parameters.size());
  for (std::size_t r = 0; r < run.rounds.size(); ++r) {
    const RecordedRound& round = run.rounds[r];
    const bool last = r + 1 == run.rounds.size();
    const std::uint64_t behind = last ? run.step : run.rounds[r + 1].table.facts[0].step;
    const bool delta = round.plan.now.mode == sync::policy::Mode::delta;
    if ((round.plan.now.mode != sync::policy::Mode::gradients && !delta) ||
        behind == round.table.facts[0].step)
      continue;
    double all = 0;
    for (const auto& f : round.table.facts) all += f.rows;
    for (std::size_t rank = 0; rank < round.table.size(); ++rank) {
      const RowInterval& rows = round.table.facts[rank].interval;
      std::vector<std::uint32_t> steps{round.table.facts[rank].rows};
      if (delta) steps = round.table.sections[rank].step_rows;
      auto at = static_cast<std::size_t>(rows.first.offset);
      for (const std::uint32_t n : steps)
        for (std::uint32_t i = 0; i < n; ++i)
          expected[rank * rows_of_a_device + at++ % rows_of_a_device] -=
              run.rate * (delta ? round.table.facts[rank].rows / all / n : 1 / all);
    }
  }
  return expected;
}

/// The largest difference over the rows of a device.
double off_by(const MassRun& run, std::size_t device) {
  const auto expected = oracle(run);
  double most = 0;
  for (std::size_t i = device * rows_of_a_device; i < (device + 1) * rows_of_a_device; ++i)
    most = std::max(most, std::abs(expected[i] - double{run.parameters[i]}));
  return most;
}

constexpr double rounding = 1e-7;

}  // namespace

TEST_CASE("Mass: whatever a compressor leaves out comes later, all of it and once") {
  for (const char* compressor : {"exact_topk", "coarse_topk"}) {
    INFO(compressor);
    MassRun run{.compressor = compressor};
    run_mass(run);
    CHECK(run.agreed);
    CHECK(run.step == compressed_steps + 10);
    CHECK(run.early_used > 10);
    double most = 0;
    for (const double x : oracle(run)) most = std::min(most, x);
    CHECK(most == doctest::Approx(-1.0 / 21));
    for (std::size_t device = 0; device < world; ++device) CHECK(off_by(run, device) < rounding);
  }
}

TEST_CASE("Mass: of movements behind own steps, too, and nothing is sent between them") {
  for (const char* compressor : {"exact_topk", "coarse_topk"}) {
    INFO(compressor);
    MassRun run{.compressor = compressor, .own_steps = 3};
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
    for (std::size_t device = 0; device < world; ++device) CHECK(off_by(run, device) < rounding);
  }
}

TEST_CASE(
    "Mass: of steps that go on while the group agrees, around a view that is lost meanwhile, and a kill") {
  for (const char* collective : {"gather", "two_sided"})
    for (const int sends : {0, 2 * 11, 2 * 12, 2 * 17}) {
      CAPTURE(collective);
      CAPTURE(sends);
      MassRun run{.own_steps = 3, .collective = collective, .overlap = true, .deaf_after = sends};
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
      for (std::size_t device = 0; device < world; ++device)
        if (!kills || device != 1) CHECK(off_by(run, device) < 4 * rounding);
    }
}

TEST_CASE(
    "Mass: of slices that their owners compress again, too, around a view that is lost in either step") {
  for (const std::int64_t own_steps : {0, 1, 3})
    for (const auto& [lane, sends] : {std::pair{sync::Lane::facts, 0}, std::pair{sync::Lane::sum, 2 * 7},
                                      std::pair{sync::Lane::phase, 2 * 7}}) {
      CAPTURE(own_steps);
      INFO("sends: ", sends);
      MassRun run{.own_steps = own_steps, .collective = "two_sided", .lane = lane, .deaf_after = sends};
      run_mass(run);
      CHECK(run.deaf_after <= 0);
      CHECK((sends == 0 || run.views >= 2));
      CHECK(run.agreed);
      for (std::size_t device = 0; device < world; ++device) CHECK(off_by(run, device) < 4 * rounding);
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
      for (std::size_t device = 0; device < world; ++device) CHECK(off_by(run, device) < 4 * rounding);
    }
}

TEST_CASE("Mass: own steps survive a view that is lost, unless others have agreed about them") {
  for (const auto& [lane, sends] :
       {std::pair{sync::Lane::facts, 2 * 12}, std::pair{sync::Lane::payload, 2 * 3}}) {
    INFO("sends: ", sends);
    MassRun run{.own_steps = 3, .lane = lane, .deaf_after = sends};
    run_mass(run);
    CHECK(run.deaf_after <= 0);
    CHECK(run.views >= 2);
    CHECK(run.agreed);
    for (std::size_t device = 0; device < world; ++device) CHECK(off_by(run, device) < rounding);
  }
}

TEST_CASE("Mass: weights that nobody could foresee, and a device that has nothing left but what it kept") {
  for (const char* compressor : {"exact_topk", "coarse_topk"}) {
    INFO(compressor);
    MassRun run{.compressor = compressor, .rows_of_last = 100};  // fourteen batches and a bit
    run_mass(run);
    CHECK(run.agreed);
    CHECK(run.early_used > 10);
    bool without_rows = false;
    for (const auto& round : run.rounds)
      without_rows = without_rows || (round.table.facts[0].rows == 7 && round.table.facts[2].rows == 0);
    CHECK(without_rows);
    for (std::size_t device = 0; device < world; ++device) CHECK(off_by(run, device) < rounding);
  }
}

TEST_CASE(
    "Mass: a compressor that forgets loses what it leaves out, and no row's share more than a bit of it") {
  MassRun run{.compressor = "halves"};
  run_mass(run);
  CHECK(run.agreed);
  CHECK(run.early_used > 10);
  CHECK(off_by(run, 0) > rounding);
  CHECK(off_by(run, 0) < 1.0 / 21 / 128);
}

TEST_CASE("Mass: a device that missed the end of a round that the others applied sends nothing of it again") {
  // Sends of device 1: to two peers in each round. With the facts from the fifth round on; before, and in the
  // fifth, behind them.
  for (const auto& [lane, sends] :
       {std::pair{sync::Lane::facts, 2 * 15}, std::pair{sync::Lane::payload, 2 * 3}}) {
    INFO("sends: ", sends);
    MassRun run{.lane = lane, .deaf_after = sends};
    run_mass(run);
    CHECK(run.deaf_after <= 0);
    CHECK(run.views >= 2);
    CHECK(run.agreed);
    for (std::size_t device = 0; device < world; ++device) CHECK(off_by(run, device) < rounding);
  }
}

TEST_CASE("Mass: of a device that is killed nothing is sent twice, and of the others nothing is lost") {
  MassRun run{.compressor = "coarse_topk",
              .faults = {{.at_s = 0.08, .kind = runtime::Fault::Kind::kill, .device = 1},
                         {.at_s = 0.6, .kind = runtime::Fault::Kind::start, .device = 1}}};
  run_mass(run);
  CHECK(run.views >= 2);
  CHECK(run.agreed);
  CHECK(off_by(run, 0) < rounding);
  CHECK(off_by(run, 2) < rounding);
  const auto expected = oracle(run);
  for (std::size_t i = rows_of_a_device; i < 2 * rows_of_a_device; ++i) {
    CHECK(run.parameters[i] <= rounding);
    CHECK(double{run.parameters[i]} >= expected[i] - rounding);
  }
}

TEST_CASE("Mass: own steps of a device that is killed are made again, and of the others nothing is lost") {
  MassRun run{.compressor = "coarse_topk",
              .own_steps = 3,
              .faults = {{.at_s = 0.08, .kind = runtime::Fault::Kind::kill, .device = 1},
                         {.at_s = 0.6, .kind = runtime::Fault::Kind::start, .device = 1}}};
  run_mass(run);
  CHECK(run.views >= 2);
  CHECK(run.agreed);
  CHECK(off_by(run, 0) < rounding);
  CHECK(off_by(run, 2) < rounding);
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
  // A number is added to some fifty times, each time with the rounding of a float.
  const double bound = rounding * rounds / 100;
  CHECK(off_by(run, 0) < bound);
  CHECK(off_by(run, 2) < bound);
  const auto expected = oracle(run);
  double lost = 0;
  for (std::size_t i = rows_of_a_device; i < 2 * rows_of_a_device; ++i) {
    CHECK(double{run.parameters[i]} >= expected[i] - bound);
    lost += double{run.parameters[i]} - expected[i];
  }
  // What a killed device kept dies with it, and nothing else: less than its share of seventy-five rounds.
  CHECK(lost > 1);
  CHECK(lost < kills * 75 * run.rate / 3);
  report_figure("mass.rounds", static_cast<double>(run.rounds.size()), "rounds");
  report_figure("mass.views", static_cast<double>(run.views), "views");
  report_figure("mass.off_by", off_by(run, 0), "of a row's weight");
  report_figure("mass.lost_by_kills", lost, "steps of all rows");
}

TEST_CASE("Memory of controllers: goes on from the agreed state in the next view, however that begins") {
  MassRun run{.compressor = "ratchet", .lane = sync::Lane::payload, .deaf_after = 2 * 3};
  run_mass(run);
  CHECK(run.agreed);
  CHECK(run.views >= 2);
  // Only what ended in a step is agreed: a round that holds, or that a view did not end, is counted again
  // when it has come so far, and the fifth of all never is.
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
  // Every fifth round of a view holds; all others made a step.
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
