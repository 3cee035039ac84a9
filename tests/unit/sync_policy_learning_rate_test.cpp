#include "sync/policy/learning_rate.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "sync/policy/arbiter.h"
#include "tests/support/members.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::policy;

namespace {

/// A group with given rows per step, and one controller of the learning rate.
class Group {
 public:
  explicit Group(std::string schedule, const std::string& rule = "none") {
    config_.learning_rate_policy = std::move(schedule);
    settings_.set("train.lr_scaling.rule", rule);
    settings_.set("train.lr_scaling.base_rows", std::int64_t{64});
    settings_.set("train.lr_scaling.cap", 4.0);
    settings_.set("train.lr_scaling.warmup_rounds", std::int64_t{20});
    settings_.set("train.lr_schedule.warmup_rows", std::int64_t{0});
    settings_.set("train.lr_schedule.every_rows", std::int64_t{1000});
    settings_.set("train.lr_schedule.gamma", 0.5);
    settings_.set("train.lr_schedule.rows", std::int64_t{1000});
    settings_.set("train.lr_schedule.min_ratio", 0.1);
  }
  void set(const std::string& key, Settings::Value value) { settings_.set(key, std::move(value)); }

  /// Factor decided after steps of `rows` on each of two devices, with `own` local steps, at this row clock.
  double factor(std::uint32_t rows, std::uint64_t clock, std::uint32_t own = 0) {
    config_.settings = settings_of(config_, settings_);
    const auto all = controllers_of(config_, builtin_controllers()).value();
    if (state_.memory.empty()) state_ = first_state(testing::members(2), config_, all);
    state_.last.next.local.reset();
    if (own > 0) state_.last.next.local = LocalSchedule{.steps = own};
    FactsTable table;
    table.facts.resize(2);
    table.sections.resize(2);
    for (Facts& f : table.facts) {
      f.rows = rows * std::max(1U, own);
      f.agreed_rows = clock;
    }
    return plan(table, config_, all, state_).now.learning_rate_factor;
  }
  /// Factor of a local step after that decision.
  [[nodiscard]] double own_factor(std::size_t rows) const { return LocalStepRate(config_, state_).of(rows); }
  /// No decision in this view yet; its memory is of others.
  void begin_view() {
    state_.round = 0;
    state_.last.now.learning_rate_factor = 1;
  }

 private:
  PolicyConfig config_;
  Settings settings_;
  PolicyState state_;
};

}  // namespace

TEST_CASE("Learning rate: schedules are of the rows that the group has trained, in however many steps") {
  Group constant("constant");
  CHECK(constant.factor(64, 0) == 1);
  CHECK(constant.factor(64, 1'000'000'000) == 1);
  Group step("step");
  CHECK(step.factor(64, 999) == 1);
  CHECK(step.factor(64, 1000) == 0.5);
  CHECK(step.factor(1, 3500) == 0.125);
  CHECK(step.factor(64, std::numeric_limits<std::uint64_t>::max()) > 0);
  Group cosine("cosine");
  for (const double part : {0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0}) {
    INFO(part);
    const double expected = 0.1 + 0.9 * (1 + std::cos(std::acos(-1.0) * part)) / 2;
    CHECK(cosine.factor(64, static_cast<std::uint64_t>(1000 * part)) ==
          doctest::Approx(expected).epsilon(1e-6));
  }
  CHECK(cosine.factor(64, 5000) == doctest::Approx(0.1));
}

TEST_CASE("Learning rate: rises from nothing over the rows of a warm-up") {
  Group group("constant");
  group.set("train.lr_schedule.warmup_rows", std::int64_t{999});
  CHECK(group.factor(64, 0) == doctest::Approx(0.001));
  CHECK(group.factor(64, 499) == doctest::Approx(0.5));
  CHECK(group.factor(64, 999) == 1);
  CHECK(group.factor(64, 5000) == 1);
}

TEST_CASE("Learning rate: follows the rows of a step, in proportion or with their root, up to a cap") {
  CHECK(Group("constant", "linear").factor(16, 0) == doctest::Approx(0.25));
  CHECK(Group("constant", "sqrt").factor(16, 0) == doctest::Approx(0.5));
  CHECK(Group("constant", "none").factor(16, 0) == 1);
  CHECK(Group("constant", "linear").factor(1024, 0) == 4);
  CHECK(Group("constant", "sqrt").factor(256, 0) == 2);
  Group apart("constant", "sqrt");
  CHECK(apart.factor(16, 0, 8) == doctest::Approx(0.5));  // for one of eight local steps
}

TEST_CASE("Learning rate: each own step is scaled by its own rows, and by no more than the group's factor") {
  Group group("constant", "sqrt");
  CHECK(group.own_factor(64) == 1);
  const double usual = group.factor(256, 0, 8);
  CHECK(usual == 2);
  CHECK(group.own_factor(256) == 2);
  CHECK(group.own_factor(1024) == 2);
  CHECK(group.own_factor(64) == 1);
  CHECK(group.own_factor(1) == doctest::Approx(0.125));
  group.begin_view();
  CHECK(group.own_factor(256) == 1);
  CHECK(group.own_factor(16) == doctest::Approx(0.5));
  Group linear("constant", "linear");
  CHECK(linear.factor(128, 0, 8) == 2);
  CHECK(linear.own_factor(32) == doctest::Approx(0.5));
  Group fixed("constant");
  CHECK(fixed.factor(256, 0, 8) == 1);
  CHECK(fixed.own_factor(1) == 1);
  Group step("step", "sqrt");  // the part left by a schedule stays in it
  CHECK(step.factor(64, 1000, 8) == 0.5);
  CHECK(step.own_factor(16) == doctest::Approx(0.25));
}

TEST_CASE("Learning rate: larger steps are followed by and by, smaller ones at once") {
  Group group("constant", "linear");
  CHECK(group.factor(64, 0) == doctest::Approx(1));
  // The mean of the last steps rises by a tenth of the way, the factor by a twentieth of the rest.
  CHECK(group.factor(128, 0) == doctest::Approx(1 + 0.1 / 20));
  double factor = 0;
  for (int i = 0; i < 200; ++i) factor = group.factor(128, 0);
  CHECK(factor == doctest::Approx(2).epsilon(0.001));
  CHECK(group.factor(0, 0) == doctest::Approx(factor));  // a round without rows has no effect
  CHECK(group.factor(64, 0) == 1);                       // of this step, whatever is usual
  CHECK(group.factor(128, 0) == doctest::Approx(1.9).epsilon(0.001));
  for (int i = 0; i < 200; ++i) factor = group.factor(1, 0);
  CHECK(factor == doctest::Approx(1 / 64.0).epsilon(0.001));
}
