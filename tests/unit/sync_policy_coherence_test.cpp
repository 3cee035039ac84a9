// Similarity of streams from deltas and losses: golden values.
#include "sync/policy/coherence.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/rng.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::policy;

namespace {

/// A filter and its memory.
struct Filter {
  std::vector<double> memory = std::vector<double>(CoherenceFilter::numbers);
  CoherenceFilter filter{memory};
};

}  // namespace

TEST_CASE("Coherence: what all have in common, and would have if they drew from one stream") {
  const std::vector<float> a{1, 0, 0, 0}, b{0, 1, 0, 0};
  // Signal 1, noise 1: half of each is common, and so is a quarter of all pairs.
  const std::vector<float> noisy_a{1, 1, 0, 0}, noisy_b{1, 0, 1, 0};
  const auto of = [](std::span<const Delta> deltas) { return coherence(deltas).value(); };
  const Delta alike[] = {{10, noisy_a, 1, 1}, {10, noisy_b, 1, 1}};
  CHECK(of(alike).common == doctest::Approx(0.25));
  CHECK(of(alike).expected == doctest::Approx(0.25));
  const Delta apart[] = {{10, a, 1, 0.1}, {10, b, 1, 0.1}};
  CHECK(of(apart).common == doctest::Approx(0));
  CHECK(of(apart).expected == doctest::Approx(0.5 / 1.1));
  const std::vector<float> back{-1, 0, 0, 0};
  const Delta against[] = {{10, a, 1, 0.1}, {10, back, 1, 0.1}};
  CHECK(of(against).common == doctest::Approx(-0.5));
  // One delta is twice as long as the other, with twice the steps and four times the rows.
  const std::vector<float> far_a{2, 1, 0, 0};
  const Delta uneven[] = {{40, far_a, 4, 1, 2}, {10, noisy_b, 1, 1, 1}};
  CHECK(of(uneven).common == doctest::Approx(0.32 * 2 / 4.4));
  CHECK(of(uneven).expected == doctest::Approx(0.32 * 2 / 4.4));
  // Opposed steps are as good a measurement as aligned ones: they are noise.
  const Delta one_way[] = {{10, a, 0.5, 1}, {10, b, 0.5, 1}};
  const Delta other_way[] = {{10, a, -0.5, 1}, {10, b, -0.5, 1}};
  CHECK(of(one_way).expected == doctest::Approx(-of(other_way).expected));
}

TEST_CASE("Coherence: nothing is known where one has all rows, nobody moves, and of numbers that are none") {
  const std::vector<float> a{1, 0, 0, 0}, b{0, 1, 0, 0}, still{0, 0, 0, 0};
  const auto known = [](std::span<const Delta> deltas) { return coherence(deltas).has_value(); };
  CHECK(coherence(std::vector<Delta>{{10, a, 1, 1}, {0, b, 1, 1}})->expected == 0);
  CHECK_FALSE(known(std::vector<Delta>{{10, a, 0, 0}, {10, b, 0, 0}}));
  CHECK_FALSE(known(std::vector<Delta>{{10, still, 1, 1}, {10, still, 1, 1}}));
  CHECK_FALSE(known({}));
  const std::vector<float> odd{std::numeric_limits<float>::quiet_NaN(), 1, 0, 0};
  const Delta with_odd[] = {{10, odd, 1, 1}, {10, b, 1, std::numeric_limits<double>::infinity()}};
  // Deltas {0, 1} and {0, 1}; one has no estimate of its noise.
  CHECK(coherence(with_odd)->common == doctest::Approx(0.5));
  CHECK(coherence(with_odd)->expected == doctest::Approx(0.5 / 1.5));
}

TEST_CASE("Coherence: the filter believes what is sure at once, and what is vague by and by") {
  Filter none;
  none.filter.add({}, 4);
  CHECK(none.filter.alike() == 1);
  CHECK_FALSE(none.filter.below(0.6));
  CHECK_FALSE(none.filter.all_is_noise());
  Filter sure;
  sure.filter.add(Coherence{0.05, 1}, 4);  // 0.79 or more are expected
  CHECK(sure.filter.alike() == doctest::Approx(0.0786).epsilon(0.01));
  CHECK(sure.filter.below(0.6));
  CHECK_FALSE(sure.filter.below(0.2));
  Filter vague;
  for (int i = 0; i < 3; ++i) vague.filter.add(Coherence{0, 0.02}, 4);
  CHECK(vague.filter.alike() > 0.95);
  CHECK_FALSE(vague.filter.below(0.6));
  for (int i = 0; i < 300; ++i) vague.filter.add(Coherence{0, 0.1}, 4);
  CHECK(vague.filter.below(0.6));
}

TEST_CASE("Coherence: where all is noise nothing is said of streams, however large it is by chance") {
  Rng rng(3);
  Filter f;
  int noise = 0;
  int differ = 0;
  for (int i = 0; i < 5'000; ++i) {
    f.filter.add(Coherence{0.1 * rng.normal(), std::clamp(0.2 * rng.normal(), -1.0, 1.0)}, 4);
    noise += f.filter.all_is_noise() ? 1 : 0;
    differ += f.filter.below(0.6) ? 1 : 0;
  }
  CHECK(noise > 4'000);
  CHECK(differ < 100);
  // As much noise; a device's steps have a common part, devices have none.
  differ = 0;
  for (int i = 0; i < 100; ++i) {
    f.filter.add(Coherence{0.1 * rng.normal(), std::clamp(0.4 + 0.2 * rng.normal(), -1.0, 1.0)}, 4);
    differ += f.filter.below(0.6) ? 1 : 0;
  }
  CHECK(differ > 80);
}

TEST_CASE("Coherence: what is expected of a few own steps is not that of many") {
  Filter f;
  for (int i = 0; i < 20; ++i) f.filter.add(Coherence{0.2, i % 2 == 0 ? 0.3 : -0.3}, 32);
  REQUIRE(f.filter.all_is_noise());
  Filter slow = f;
  slow.filter = CoherenceFilter(slow.memory);
  for (int i = 0; i < 2; ++i) slow.filter.add(Coherence{0, 0.8}, 20);
  CHECK_FALSE(slow.filter.below(0.6));
  for (int i = 0; i < 2; ++i) f.filter.add(Coherence{0, 0.8}, 16);
  CHECK(f.filter.below(0.6));
}

TEST_CASE("Coherence: streams that are alike stay so where little is expected, and much is chance") {
  Rng rng(4);
  Filter f;
  int differ = 0;
  for (int i = 0; i < 5'000; ++i) {
    f.filter.add(Coherence{0.1 + 0.1 * rng.normal(), std::clamp(0.08 + 0.2 * rng.normal(), -1.0, 1.0)}, 4);
    differ += f.filter.below(0.6) ? 1 : 0;
  }
  CHECK(differ < 100);
}

TEST_CASE("Coherence: what was seen long ago is forgotten, so that own steps are tried again") {
  Filter f;
  f.filter.add(Coherence{0.08, 1}, 4);
  int agreements = 0;
  while (f.filter.alike() < 0.8 && ++agreements < 10'000) f.filter.add({}, 4);
  CHECK(agreements > 500);
  CHECK(agreements < 1'000);
  CHECK_FALSE(f.filter.below(0.6));
}

TEST_CASE("Coherence: doublings are exact at powers of two, and straight between them") {
  CHECK(doublings(1) == 0);
  CHECK(doublings(2) == 1);
  CHECK(doublings(8) == 3);
  CHECK(doublings(3) == 1.5);
  CHECK(doublings(5) == 2.25);
  CHECK(doublings(0.3) == 0);
  CHECK(doublings(std::numeric_limits<double>::quiet_NaN()) == 0);
  CHECK(doublings(std::numeric_limits<double>::infinity()) == 1024);
}

TEST_CASE("Coherence: the loss of a row varies as much as devices differ, or as it is not as usual") {
  FactsTable table;
  table.facts.resize(2);
  for (Facts& f : table.facts) f.rows = 100;
  table.facts[0].loss_sum = 100;
  table.facts[1].loss_sum = 300;
  CHECK(loss_variance(table, 2, 2) ==
        doctest::Approx(50));  // 100 + 100 over one degree of freedom and 2 squared
  table.facts[1].loss_sum = 100;
  CHECK(loss_variance(table, 1, 1) == 0);
  CHECK(loss_variance(table, 1, 0.8) == doctest::Approx(200 * 0.25 * 0.25));
  CHECK(loss_variance(table, 1, 0.1) == doctest::Approx(200 * 0.5 * 0.5));
  CHECK(loss_variance(table, 1, 3) == 0);  // it learns
  CHECK(loss_variance(table, 0, 1) == 0);
  CHECK(loss_variance(table, 1, 0) == 0);
}

TEST_CASE("Coherence: nothing in common is known, and is not the same as nothing that is known") {
  std::vector<double> memory(CoherenceFilter::numbers);
  CHECK_FALSE(CoherenceFilter(memory).has_begun());
  memory[1] = 0.01;  // the variance so far
  CHECK(CoherenceFilter(memory).has_begun());
  CHECK(CoherenceFilter(memory).below(0.5));
}
