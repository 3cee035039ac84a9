// sync.policy = "selsync": devices make local steps until the gradients of one of them change.
#include <doctest/doctest.h>

#include "tests/support/group_run.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;
using sync::policy::Mode;

namespace {

LoadedConfig selsync_job(std::uint32_t devices, double delta) {
  auto job = linear_job(devices);
  auto& c = job.config;
  c.batch.policy = "fixed";
  c.batch.rows = 16;
  c.sync.policy = "selsync";
  c.settings.set("sync.selsync.delta", delta);
  c.settings.set("sync.selsync.half_life", 4.0);
  c.settings.set("sync.selsync.quorum", 0.0);
  c.settings.set("sync.selsync.steps_max", std::int64_t{20});
  c.settings.set("sync.selsync.target", 0.0);
  return job;
}

/// Local steps of device 0 before each synchronization.
std::vector<std::size_t> steps_of(const Outcome& out) {
  std::vector<std::size_t> all;
  for (const auto& round : out.rounds)
    if (round.plan.now.mode == Mode::delta) all.push_back(round.table.sections[0].step_rows.size());
  return all;
}

double own_share(const std::vector<std::size_t>& steps) {
  double sum = 0;
  for (const std::size_t one : steps) sum += static_cast<double>(one);
  return 1 - static_cast<double>(steps.size()) / sum;
}

}  // namespace

TEST_CASE("SelSync: a delta of 0 is bit for bit what agreeing after every step is") {
  const Outcome selsync = run(selsync_job(3, 0), fast(30));
  auto job = selsync_job(3, 0);
  job.config.sync.policy = "every";
  const Outcome every = run(job, fast(30));
  CHECK(selsync.step == 30);
  CHECK(selsync.parameters == every.parameters);
  CHECK(selsync.momentum == every.momentum);
  CHECK(rounds_of(selsync, Mode::gradients) == 30);
}

TEST_CASE(
    "SelSync: gradients that never change enough are agreed on after the most steps, all replicas alike") {
  const Outcome out = run(selsync_job(3, 1e5), fast(6));
  const auto steps = steps_of(out);
  REQUIRE(steps.size() == 6);
  CHECK(steps[0] == 1);  // without a comparison the first step requests a synchronization
  for (std::size_t i = 1; i < steps.size(); ++i) CHECK(steps[i] == 20);
  for (const auto& parameters : out.parameters) CHECK(parameters == out.parameters[0]);
  CHECK(out.rows == (1 + 5 * 20) * 3 * 16);
  // LSSR, exactly.
  const auto own = std::ranges::find(out.controllers, "when/selsync", &sync::policy::ControllerMemory::name);
  REQUIRE(own != out.controllers.end());
  CHECK(own->values.at(2) == 1 - 6.0 / 101);
}

TEST_CASE("SelSync: one device that calls brings all, and a smaller delta makes more calls") {
  const auto shares = [](double delta) { return own_share(steps_of(run(selsync_job(4, delta), fast(60)))); };
  const double often = shares(0.02);
  const double seldom = shares(0.3);
  CHECK(often < seldom);
  CHECK(often < 0.6);
  CHECK(seldom > 0.6);
  CHECK(seldom < 0.95);
}

TEST_CASE("SelSync: where a quorum is asked for, one caller is not enough, and no step is lost") {
  auto one = selsync_job(4, 0.05);
  const Outcome alone = run(one, fast(40));
  one.config.settings.set("sync.selsync.quorum", 1.0);
  const Outcome all = run(one, fast(40));
  CHECK(rounds_of(alone, Mode::defer) == 0);
  CHECK(rounds_of(all, Mode::defer) > 0);
  CHECK(own_share(steps_of(all)) > own_share(steps_of(alone)));
  for (const auto& parameters : all.parameters) CHECK(parameters == all.parameters[0]);
}

TEST_CASE("SelSync: delta follows a wanted share of own steps, up or down") {
  for (const double target : {0.6, 0.9}) {
    CAPTURE(target);
    auto job = selsync_job(4, 0.3);
    job.config.settings.set("sync.selsync.target", target);
    const auto steps = steps_of(run(job, fast(400)));
    CHECK(own_share({steps.end() - 150, steps.end()}) == doctest::Approx(target).epsilon(0.08));
  }
}
