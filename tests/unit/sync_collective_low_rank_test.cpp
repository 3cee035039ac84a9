// Matrices as products of thin ones, summed in transit: nothing is lost, all ranks have the same bits, and
// the approximation improves from round to round.
#include <doctest/doctest.h>

#include "sync/coding/low_rank.h"
#include "tests/support/collective_group.h"

using namespace rivulet;
using testing::CollectiveGroup;

namespace {

/// Tensors of 24 x 30, of 5 x 8 and of 7 elements.
CollectiveGroup low_rank(std::uint32_t world, std::int64_t rank = 2, std::size_t buffers = 5) {
  CollectiveGroup::Options options{.collective = "low_rank",
                                   .compressor = "low_rank",
                                   .shape = {Scalar::f32, {720, 40, 7}, buffers, {24, 5, 1}},
                                   .first_has_rows = false};
  options.settings.set("compression.low_rank.rank", rank);
  return {world, std::move(options)};
}

double squares(const std::vector<float>& numbers, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += double{numbers[i]} * double{numbers[i]};
  return sum;
}

}  // namespace

TEST_CASE("Low rank: all ranks agree on the same bits, and what is not agreed on is kept") {
  for (const std::uint32_t world : {1U, 2U, 3U, 4U, 7U}) {
    CAPTURE(world);
    auto group = low_rank(world);
    testing::check_that_nothing_is_lost(group, 30, [](const std::vector<float>&) {});
  }
}

TEST_CASE("Low rank: what has no more than that rank arrives as it is, in one round") {
  auto group = low_rank(3);
  Rng rng(4);
  std::vector<float> left(2 * 24), right(2 * 30);
  for (float& x : left) x = static_cast<float>(rng.normal());
  for (float& x : right) x = static_cast<float>(rng.normal());
  group.draw(0);
  for (std::uint32_t r = 0; r < 3; ++r)
    for (std::size_t i = 0; i < 24; ++i)
      for (std::size_t j = 0; j < 30; ++j)
        group.mine[r][30 * i + j] =
            static_cast<float>(r + 1) * left[i] * right[j] + left[24 + i] * right[30 + j];
  group.run(0);
  for (std::size_t i = 0; i < 720; ++i)
    CHECK(group.agreed[0][i] == doctest::Approx(group.contributed(i)).epsilon(1e-4).scale(1));
}

TEST_CASE(
    "Low rank: the same contributions again and again arrive better, for what was agreed is the start") {
  auto group = low_rank(4, 2, 0);
  group.draw(7);
  double whole = 0;
  for (std::size_t i = 0; i < 720; ++i) whole += group.contributed(i) * group.contributed(i);
  std::vector<double> shares;
  for (std::uint64_t round = 0; round < 12; ++round) {
    for (auto& residual : group.residuals) residual->forget();
    group.run(round);
    shares.push_back(squares(group.agreed[0], 720) / whole);
  }
  CHECK(shares.back() > 1.15 * shares.front());
  for (std::size_t i = 1; i < shares.size(); ++i) CHECK(shares[i] >= shares[i - 1] - 1e-6);
}

TEST_CASE("Low rank: a tensor that was 0 in a round, or of a lower rank, arrives when it is not any more") {
  auto group = low_rank(3, 2, 0);
  for (std::uint64_t round = 0; round < 3; ++round) {
    group.draw(round);
    for (auto& mine : group.mine)
      for (std::size_t i = 0; i < 720; ++i) mine[i] = round == 1 ? static_cast<float>(i % 30) : 0;
    for (auto& residual : group.residuals) residual->forget();
    group.run(round);
  }
  for (std::uint64_t round = 3; round < 12; ++round) {
    group.draw(9);
    for (auto& residual : group.residuals) residual->forget();
    group.run(round);
  }
  auto other = low_rank(3, 2, 0);
  for (std::uint64_t round = 3; round < 12; ++round) {
    other.draw(9);
    for (auto& residual : other.residuals) residual->forget();
    other.run(round);
  }
  CHECK(squares(group.agreed[0], 720) > 0.95 * squares(other.agreed[0], 720));
}

TEST_CASE("Low rank: small tensors are sent whole, and sent as a dense sum where all are small") {
  auto group = low_rank(4, 64, 3);
  group.draw(1);
  group.run(1);
  for (std::size_t i = 0; i < 767; ++i)
    CHECK(group.agreed[0][i] == doctest::Approx(group.contributed(i)).epsilon(1e-5).scale(1));
  for (auto& residual : group.residuals) CHECK(residual->empty());
}

TEST_CASE("Low rank: sends 2 (N - 1) / N slots") {
  for (const std::uint32_t world : {2U, 4U}) {
    auto group = low_rank(world, 2, 0);
    group.draw(0);
    group.run(0);
    // 2 (24 + 30) of the first, 2 (5 + 8) of the second, and 7 uncompressed.
    const double slot = 4 * (2 * (24 + 30) + 2 * (5 + 8) + 7);
    const auto sent = static_cast<double>(group.ranks[0].counters().bytes_sent);
    const double n = world;
    CHECK(sent == doctest::Approx(2 * (n - 1) / n * slot).epsilon(0.05));
  }
}

TEST_CASE(
    "Low rank: what is not a number makes the sum none, and the round after it is as if it had not been") {
  auto group = low_rank(3);
  group.draw(0);
  group.mine[1][100] = std::nanf("");
  group.run(0);
  const auto something_is_none = [&] {
    return std::any_of(group.agreed[0].begin(), group.agreed[0].begin() + 720,
                       [](float x) { return !std::isfinite(x); });
  };
  CHECK(something_is_none());
  for (auto& residual : group.residuals) residual->forget();
  group.draw(1);
  group.run(1);
  CHECK_FALSE(something_is_none());
  auto other = low_rank(3);
  other.draw(1);
  other.run(1);
  // The other tensors began one round earlier.
  CHECK(std::equal(group.agreed[0].begin(), group.agreed[0].begin() + 720, other.agreed[0].begin()));
}

TEST_CASE("Low rank: columns that depend on each other become 0, the others orthonormal") {
  const sync::ContributionShape shape{Scalar::f32, {720}, 0, {24}};
  const sync::LowRankLayout layout(shape, 3);
  std::vector<double> left(layout.left());
  Rng rng(1);
  for (std::size_t i = 0; i < 24; ++i) {
    left[i] = rng.normal();
    left[24 + i] = 3 * left[i];
    left[48 + i] = rng.normal();
  }
  sync::orthonormalize<double>(layout, left);
  const auto product = [&](std::size_t a, std::size_t b) {
    double sum = 0;
    for (std::size_t i = 0; i < 24; ++i) sum += left[24 * a + i] * left[24 * b + i];
    return sum;
  };
  CHECK(product(0, 0) == doctest::Approx(1));
  CHECK(product(1, 1) == 0);
  CHECK(product(2, 2) == doctest::Approx(1));
  CHECK(std::abs(product(0, 2)) < 1e-12);
}
