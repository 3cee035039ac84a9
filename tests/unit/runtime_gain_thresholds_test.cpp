// Thresholds for compression gates, from the gains in a decision log.
#include <doctest/doctest.h>

#include "runtime/decisions/decision_log.h"
#include "runtime/decisions/gain_thresholds.h"
#include "tests/support/gated_group.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

/// A log of rounds with these gains at every keep ratio, for each of two devices.
std::string log_of(const TempDir& folder, const std::string& policy, const std::vector<double>& gains) {
  const std::string path = (folder.path() / "decisions.jsonl").string();
  const auto log = open_decision_log(path, 100'000'000);
  REQUIRE(log);
  Gated group(policy, 2, 10'000);
  group.begin();
  ViewRecord view{.number = 1, .token = 1, .policy = group.config, .state = group.state};
  view.members = std::vector<std::string>{"a", "b"};
  log.value()->enter_view(view);
  std::uint64_t round = 0;
  for (const double gain : gains) {
    Gains both = flat(gain);
    both.contribution_norm = 2;  // unsquared: 2 sqrt(gain)
    group.step(both);
    log.value()->write(1, round++, group.table, group.state.last);
    log.value()->finish_round(group.state);
  }
  return path;
}

}  // namespace

TEST_CASE("Gain thresholds: what a share of the rounds reaches, by both definitions") {
  const TempDir folder;
  const auto path = log_of(folder, "gravac", {0.04, 0.16, 0.25, 0.36, 0.49, 0.64, 0.81, 1.0, 0.09, 0.01});
  const auto half = gain_thresholds(path, 0.5, sync::policy::builtin_controllers());
  REQUIRE_MESSAGE(half, half.error().message);
  CHECK(half.value().rounds == 10);
  REQUIRE(half.value().shares.size() == sync::gain_keeps.size());
  CHECK(half.value().shares[3].keep == 0.1);
  CHECK(half.value().shares[3].squared == doctest::Approx(0.36));  // 0.36 and four above it
  CHECK(half.value().shares[3].unsquared == doctest::Approx(1.2));
  const auto seldom = gain_thresholds(path, 0.1, sync::policy::builtin_controllers());
  CHECK(seldom.value().shares[3].squared == doctest::Approx(1.0));
  const auto always = gain_thresholds(path, 1, sync::policy::builtin_controllers());
  CHECK(always.value().shares[3].squared == doctest::Approx(0.01));
}

TEST_CASE("Gain thresholds: a log without gains says which policies have them") {
  const TempDir folder;
  const auto path = log_of(folder, "none", {0.5});
  const auto found = gain_thresholds(path, 0.5, sync::policy::builtin_controllers());
  REQUIRE(!found);
  CHECK(found.error().code == ErrorCode::unavailable);
  CHECK(contains(found.error().message, "compression.policy gravac, moo, two-point"));
}
