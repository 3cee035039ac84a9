// source.retention: waiting and dropped rows of streams that are faster than their devices.
#include <doctest/doctest.h>

#include "tests/support/group_support.h"
#include "tests/support/real_node.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

constexpr double rate = 300;
constexpr double step_seconds = 1.2;
constexpr std::uint32_t rows_of_a_step = 8;

/// Two devices that train 8 of 360 rows in each step.
std::unique_ptr<SimulatedGroup> overwhelmed(const std::string& retention, std::uint64_t rounds) {
  auto job = linear_job(2);
  auto& c = job.config;
  c.batch.policy = "fixed";
  c.batch.rows = c.batch.max = rows_of_a_step;
  c.batch.max_wait = std::chrono::seconds(20);
  c.sync.deadline = std::chrono::seconds(60);
  c.buffer.rows = 65'536;
  c.source.retention = retention;
  SimulateOptions options;
  options.rates = {{{0, rate}}};
  options.profile = {std::chrono::milliseconds(static_cast<int>(1000 * step_seconds)), 1e9};
  options.stop_after.rounds = rounds;
  auto group = build_group(job, options);
  run_to_end(*group);
  return group;
}

}  // namespace

TEST_CASE("Retention: what waits is that of the closed forms, and every row has one fate") {
  constexpr std::uint64_t rounds = 60;  // all rows that waited at first are trained
  for (const std::string retention : {"persist", "truncate-newest", "truncate-oldest"}) {
    INFO(retention);
    const auto group = overwhelmed(retention, rounds);
    for (std::size_t i = 0; i < group->size(); ++i) {
      const auto& status = group->node(i).status();
      const double waits = static_cast<double>(status.rows_waiting.load());
      const double trained = static_cast<double>(status.rows_trained.load());
      // Persistence: equation 2 of ScaDLES, all rows received and not trained. Truncation: rows of one
      // second.
      if (retention == "persist")
        CHECK(waits == doctest::Approx(rate * step_seconds * rounds - trained).epsilon(0.05));
      if (retention == "truncate-newest") CHECK(waits == doctest::Approx(rate).epsilon(0.05));
      if (retention == "truncate-oldest") CHECK(waits <= 1.05 * rate);
      const std::uint64_t truncated = status.rows_dropped[DropReason::truncated];
      CHECK((retention == "persist") == (truncated == 0));
    }
    for (const auto& [partition, progress] : group->node(0).state().partitions) {
      CHECK(progress.adds_up());
      CHECK(progress.is_explained());
      const std::uint64_t dropped = progress.dropped[static_cast<std::size_t>(DropReason::truncated)];
      CHECK((retention == "persist") == (dropped == 0));
      CHECK(progress.trained + dropped ==
            static_cast<std::uint64_t>(progress.next.offset - progress.start.offset));
    }
  }
}
