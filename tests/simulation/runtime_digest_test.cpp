// Devices with unexpectedly different bits are detected before the next payload is applied, and named.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "core/rng.h"
#include "tests/support/effort.h"
#include "tests/support/group_support.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

runtime::SimulateOptions even(std::size_t devices) {
  runtime::SimulateOptions options;
  options.rates.assign(devices, {{0, 300}});
  options.profile = {std::chrono::milliseconds(2), 8000};
  options.link = {std::chrono::milliseconds(1), 12.5e6};
  options.stop_after.rounds = 200;
  return options;
}

enum class Where : std::uint8_t { parameters, momentum, rows, offset };
const std::string where_names[] = {"parameters", "momentum", "row clock", "offset"};

void flip(runtime::AgreedState& state, Where where, std::size_t bit) {
  if (where == Where::rows) {
    state.rows ^= 1ULL << (bit % 64);
  } else if (where == Where::offset) {
    state.partitions.begin()->second.next.offset ^= 1LL << (bit % 40);
  } else {
    const auto& array = where == Where::momentum ? state.model.optimizer_array(0) : state.model.parameters();
    const auto bytes = array.host_bytes();
    bytes[bit / 8 % bytes.size()] ^= std::byte{static_cast<unsigned char>(1U << (bit % 8))};
  }
}

/// Runs until `victim` has applied `step` rounds, flips one bit of its state, and continues.
std::unique_ptr<runtime::SimulatedGroup> flip_a_bit(std::uint32_t devices, std::uint32_t every,
                                                    std::size_t victim, std::uint64_t step, std::size_t bit,
                                                    Where where = Where::parameters) {
  auto job = linear_job(devices);
  job.config.sync.digest_every = every;
  auto group = build_group(job, even(devices));
  auto& node = group->node(victim);
  run_to_end(*group, [&] { return node.state().stamp.step >= step; });
  flip(node.own_state(), where, bit);
  run_to_end(*group);
  return group;
}

void check_caught(runtime::SimulatedGroup& group, std::uint32_t every, std::size_t victim,
                  std::uint64_t step) {
  const std::string id = "device-0" + std::to_string(victim + 1);
  for (std::size_t i = 0; i < group.size(); ++i) {
    const auto& error = group.node(i).worker().ending().error;
    REQUIRE(error);
    INFO(error->message);
    CHECK(error->code == ErrorCode::diverged);
    if (group.size() >= 3) CHECK(error->message.find(" " + id + " holds ") != std::string::npos);
    // The round with the first digest after the flip is not applied: with K = 1 no later round is.
    CHECK(group.node(i).state().stamp.step >= step);
    CHECK(group.node(i).state().stamp.step <= step + every - 1);
  }
  const auto s = group.summary();
  CHECK_FALSE(s.parameters_equal);
  for (std::size_t i = 0; i < group.size(); ++i)
    for (std::size_t k = 0; k < group.size(); ++k)
      if (i != victim && k != victim) CHECK(s.devices[i].digest == s.devices[k].digest);
}

}  // namespace

TEST_CASE(
    "Digest: a flipped bit at any rank and round is caught in the first digest round after it, and named") {
  Rng rng = Rng::derive(seed_or(2026), "flips");
  const int trials = repetitions(12, 1000);
  int healed = 0;
  for (const std::uint32_t every : {1U, 10U}) {
    for (int trial = 0; trial < trials; ++trial) {
      const auto devices = static_cast<std::uint32_t>(3 + rng.below(3));
      const std::size_t victim = rng.below(devices);
      const std::uint64_t step = 1 + rng.below(60);
      const std::size_t bit = rng.below(1 << 20);
      // With K = 10 a flipped momentum may be rounded away before the comparison, and the owner's next
      // announcement already reveals a moved offset.
      const auto where = every == 1          ? static_cast<Where>(rng.below(4))
                         : rng.below(2) == 0 ? Where::parameters
                                             : Where::rows;
      INFO("every ", every, ", device ", victim, " of ", devices, ", step ", step, ", bit ", bit, " of the ",
           where_names[static_cast<std::size_t>(where)]);
      auto group = flip_a_bit(devices, every, victim, step, bit, where);
      if (every > 1 && !group->node(0).worker().ending().error && group->summary().parameters_equal) {
        ++healed;  // rounded away before the comparison: the bits are equal again
        continue;
      }
      check_caught(*group, every, victim, step);
    }
  }
  CHECK(healed <= std::max(1, trials / 50));
  report_figure("flips_rounded_away_before_a_look_in_10", healed, "");
}

TEST_CASE("Digest: a bit that flips while nobody has rows is caught before the next round is applied") {
  auto options = even(3);
  for (auto& trace : options.rates) trace = {{0, 300}, {2, 0}, {10, 300}};
  auto group = build_group(linear_job(3), options);
  group->run_until([&] { return group->seconds() >= 6; });
  auto& state = group->node(1).own_state();
  const std::uint64_t step = state.stamp.step;
  REQUIRE(step > 5);
  state.model.parameters().host_bytes()[3] ^= std::byte{4};
  run_to_end(*group);
  check_caught(*group, 1, 1, step);
  CHECK(group->seconds() < 10);  // an idle round is a round
}

TEST_CASE("Digest: two devices cannot say who is wrong, but they stop") {
  auto group = flip_a_bit(2, 1, 1, 5, 77);
  check_caught(*group, 1, 1, 5);
  CHECK(group->node(0).worker().ending().error->message.find("device-01 holds") != std::string::npos);
  CHECK(group->node(0).worker().ending().error->message.find("device-02 holds") != std::string::npos);
}

TEST_CASE("Digest: devices that are leaving anyway still say that they differ") {
  auto group = build_group(linear_job(3), even(3));
  run_to_end(*group, [&] { return group->node(0).state().stamp.step >= 5; });
  flip(group->node(1).own_state(), Where::parameters, 9);
  for (std::size_t i = 0; i < 3; ++i) group->request_leave(i);
  run_to_end(*group);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& error = group->node(i).worker().ending().error;
    REQUIRE(error);
    CHECK(error->code == ErrorCode::diverged);
  }
}

TEST_CASE("Digest: without a flip nothing is caught, with K = 1 and K = 10") {
  for (const std::uint32_t every : {1U, 10U}) {
    auto job = linear_job(3);
    job.config.sync.digest_every = every;
    auto group = build_group(job, even(3));
    run_to_end(*group);
    const auto s = group->summary();
    CHECK(s.parameters_equal);
    CHECK(s.rounds == 200);
    for (std::size_t i = 0; i < 3; ++i) CHECK_FALSE(group->node(i).worker().ending().error);
  }
}
