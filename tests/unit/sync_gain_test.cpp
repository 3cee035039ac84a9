// The gain of compression, and the published gates that use it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/rng.h"
#include "sync/coding/energy.h"
#include "sync/coding/gains.h"
#include "sync/coding/selection.h"
#include "sync/published/gain.h"
#include "tests/support/gated_group.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::policy;
using namespace rivulet::testing;

namespace {

enum class Law : std::uint8_t { normal, laplace };

double draw(Rng& rng, Law law) {
  const double u = std::max(rng.uniform(), 1e-300);
  const double v = rng.uniform();
  if (law == Law::laplace) return (v < 0.5 ? 1 : -1) * -std::log(u);
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v);
}

std::vector<float> drawn(std::size_t count, Law law, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<float> numbers(count);
  for (float& x : numbers) x = static_cast<float>(draw(rng, law));
  return numbers;
}

GradientView view_of(std::vector<float>& numbers) {
  return {.data = reinterpret_cast<std::byte*>(numbers.data()), .count = numbers.size()};
}

/// By a sort: the shares of the squared norm in the largest 1, 2, 3 ... elements.
std::vector<double> exact_shares(std::vector<float> numbers) {
  for (float& x : numbers) x = std::abs(x);
  std::ranges::sort(numbers, std::greater<>());
  std::vector<double> shares(numbers.size());
  double sum = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    shares[i] = sum += static_cast<double>(numbers[i]) * numbers[i];
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace

TEST_CASE("Gain: the golden values of normal and Laplace numbers") {
  auto normal = drawn(300'000, Law::normal, 1);
  const auto of_normal = gains_of(view_of(normal), 1, {});
  const auto at = [](const Gains& gains, double keep) {
    const auto place = std::ranges::find(gain_keeps, keep);
    REQUIRE(place != gain_keeps.end());
    return static_cast<double>(gains.shares.at(static_cast<std::size_t>(place - gain_keeps.begin())));
  };
  CHECK(at(of_normal, 0.1) == doctest::Approx(0.439).epsilon(0.015));
  CHECK(at(of_normal, 0.01) == doctest::Approx(0.0845).epsilon(0.025));
  CHECK(at(of_normal, 0.001) == doctest::Approx(0.0127).epsilon(0.05));
  auto laplace = drawn(300'000, Law::laplace, 2);
  const auto of_laplace = gains_of(view_of(laplace), 1, {});
  CHECK(at(of_laplace, 0.1) == doctest::Approx(0.595).epsilon(0.015));
  CHECK(at(of_laplace, 0.01) == doctest::Approx(0.162).epsilon(0.03));
  CHECK(at(of_laplace, 0.001) == doctest::Approx(0.0318).epsilon(0.06));
}

TEST_CASE(
    "Gain: within a hundredth of what a sort says, whatever the numbers are, and exact where they are "
    "alike") {
  for (const Law law : {Law::normal, Law::laplace})
    for (const double power : {1.0, 3.0}) {
      auto numbers = drawn(40'000, law, 3);
      for (float& x : numbers) x = std::copysign(std::pow(std::abs(x), static_cast<float>(power)), x);
      EnergyHistogram histogram;
      histogram.add(view_of(numbers), 1);
      const auto exact = exact_shares(numbers);
      const auto shares = histogram.shares(gain_keeps);
      for (std::size_t i = 0; i < gain_keeps.size(); ++i) {
        const auto k = static_cast<std::size_t>(gain_keeps.at(i) * static_cast<double>(numbers.size()) + 0.5);
        CAPTURE(gain_keeps.at(i));
        CHECK(shares[i] == doctest::Approx(exact[k - 1]).epsilon(0.01));
      }
      const double norm2 = std::inner_product(numbers.begin(), numbers.end(), numbers.begin(), 0.0);
      CHECK(histogram.squares() == doctest::Approx(norm2).epsilon(0.005));
    }
  std::vector<float> alike(1000, -2.0F);
  alike[17] = std::numeric_limits<float>::quiet_NaN();
  alike[18] = std::numeric_limits<float>::infinity();
  EnergyHistogram histogram;
  histogram.add(view_of(alike), 0.5);
  CHECK(histogram.share(0.5) == doctest::Approx(500.0 / 998));
  CHECK(histogram.share(1) == doctest::Approx(1));
  std::vector<float> nothing(1000, 0.0F);
  EnergyHistogram empty;
  empty.add(view_of(nothing), 1);
  CHECK(empty.share(0.1) == 0);
}

TEST_CASE(
    "Gain: with the raw gradient below, it climbs to one on pure noise; with the error-fed one it stays") {
  // Error feedback on normal variates, with a hundredth sent (algorithms with residuals:
  // docs/science/gravac.md).
  const std::size_t count = 4000;
  std::vector<float> residual(count, 0.0F);
  double squared = 0;
  double unsquared = 0;
  for (std::uint64_t round = 0; round < 200; ++round) {
    auto gradient = drawn(count, Law::normal, 100 + round);
    const Gains gains = gains_of(view_of(gradient), 1, view_of(residual));
    const double share = gains.shares[10];  // 0.01
    squared = share;
    unsquared = std::sqrt(share) * gains.contribution_norm / gains.gradient_norm;
    for (std::size_t i = 0; i < count; ++i) residual[i] += gradient[i];
    std::vector<std::uint32_t> largest;
    select_largest<float>(residual, count / 100, largest);
    for (const std::uint32_t at : largest) residual[at] = 0;
    if (round == 0) {
      CHECK(squared == doctest::Approx(0.0845).epsilon(0.15));
      CHECK(unsquared == doctest::Approx(std::sqrt(0.0845)).epsilon(0.1));
    }
  }
  CHECK(gain_keeps[10] == 0.01);
  CHECK(squared < 0.08);
  CHECK(unsquared > 0.9);
}

TEST_CASE("Two-point: more than half must lose little, smoothed; what is sent is decided with the facts") {
  Gated group("two-point", 4, 10'000);
  const RoundPlan first = group.step(flat(0.9));
  CHECK(first.next.gated);
  CHECK(first.now.way.value().compressor == "topk");
  CHECK(first.now.way.value().keep_ratio == 0.1);
  const std::vector<Gains> half{flat(0.9), flat(0.9), flat(0.1), flat(0.1)};
  Gated even("two-point", 4, 10'000);
  CHECK(even.step(half).now.way.value().compressor == "dense");  // two of four are no majority
  Gated three("two-point", 4, 10'000);
  CHECK(three.step({flat(0.9), flat(0.9), flat(0.9), flat(0.1)}).now.way.value().compressor == "topk");

  group.step(flat(0.0));  // one odd round hardly changes the mean
  CHECK(group.step(flat(0.9)).now.way.value().compressor == "topk");
  for (int i = 0; i < 10; ++i) group.step(flat(0.0));
  CHECK(group.step(flat(0.9)).now.way.value().compressor == "dense");
  CHECK(group.state.last.next.gated);
}

TEST_CASE("Two-point: rounds that exchange nothing decide nothing") {
  Gated group("two-point", 2, 10'000);
  group.rows = 0;
  CHECK_FALSE(group.step(flat(0.9)).now.way);
}

TEST_CASE(
    "GraVAC: the candidate where its gain suffices, else the low factor, else all; a step up each window") {
  Gated group("gravac", 2, 1'000'000);
  group.settings.set("compression.gravac.window", std::int64_t{10});
  Gains gains = flat(0);
  const auto set = [&](double keep, double share) {
    const auto place = std::ranges::find(gain_keeps, keep);
    gains.shares.at(static_cast<std::size_t>(place - gain_keeps.begin())) = static_cast<float>(share);
  };
  // The keep ratio of each factor of the ladder: 10, 20, 40, 160, 1000.
  set(0.1, 0.95);
  set(0.05, 0.9);
  set(0.025, 0.8);
  set(0.00625, 0.5);
  set(0.001, 0.1);
  std::vector<double> factors;
  for (int i = 0; i < 50; ++i) {
    group.sync_seconds = 0.1 + 1e-3 * i;  // all speeds differ
    factors.push_back(std::round(1 / group.step(gains).now.way.value().keep_ratio));
  }
  CHECK(factors[0] == 20);
  CHECK(factors[8] == 20);
  CHECK(factors[9] == 40);
  CHECK(factors[18] == 40);
  CHECK(factors[19] == 10);  // 160 would lose too much: the low factor
  CHECK(factors[40] == 10);
  for (auto& share : gains.shares) share = 0.1F;
  for (int i = 0; i < 100; ++i) group.step(gains);
  CHECK(group.state.last.now.way.value().compressor == "dense");
}

TEST_CASE("GraVAC: gains that agree make the candidate the low factor, speeds that agree end the search") {
  Gated group("gravac", 2, 1'000'000);
  group.settings.set("compression.gravac.window", std::int64_t{30});
  std::vector<double> factors;
  for (int i = 0; i < 200; ++i)
    factors.push_back(std::round(1 / group.step(flat(0.95)).now.way.value().keep_ratio));
  // 20 and 40 were tried for a window each, and process as many rows per second: 20 stays.
  CHECK(factors[20] == 20);
  CHECK(factors[50] == 40);
  CHECK(factors[199] == 20);
  const auto* memory = &group.state.memory.front().values;
  CHECK(memory->at(3) == 1);
}

TEST_CASE("MOO: of shares that none beats, the compromise between time and gain; a floor for the gain") {
  Gated group("moo", 4, 1'000'000);
  Gains gains = flat(0);
  const auto set = [&](double keep, double share) {
    const auto place = std::ranges::find(gain_keeps, keep);
    gains.shares.at(static_cast<std::size_t>(place - gain_keeps.begin())) = static_cast<float>(share);
  };
  set(0.1, 0.9);
  set(0.033, 0.8);
  set(0.011, 0.6);
  set(0.004, 0.3);
  set(0.001, 0.1);
  // Time scaled: 1, .33, .11, .03, 0; 1 / gain scaled: 0, .02, .06, .25, 1.
  for (int i = 0; i < 30; ++i) {
    group.sent = i % 2 == 0 ? 1e5 : 1e6;
    group.sync_seconds = 0.01 + group.sent / 1e6;
    group.step(gains);
  }
  CHECK(group.state.last.now.way.value().keep_ratio == 0.011);
  group.settings.set("compression.moo.epsilon", 0.75);
  Gated strict("moo", 4, 1'000'000);
  strict.settings.set("compression.moo.epsilon", 0.85);
  CHECK(strict.step(gains).now.way.value().keep_ratio == 0.1);
  strict.settings.set("compression.moo.epsilon", 0.95);
  Gated none("moo", 4, 1'000'000);
  none.settings.set("compression.moo.epsilon", 0.95);
  CHECK(none.step(gains).now.way.value().compressor == "dense");
}
