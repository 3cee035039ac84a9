// Selections by a threshold, as in published compressors.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/rng.h"
#include "runtime/config/config.h"
#include "sync/coding/selection.h"
#include "tests/support/dense_exchange.h"

using namespace rivulet;
using namespace rivulet::sync;
using testing::view_over;

namespace {

template <class T>
std::vector<T> drawn(std::size_t count, std::uint64_t seed, double power = 1) {
  Rng rng(seed);
  std::vector<T> numbers(count);
  for (T& x : numbers) {
    const double normal = rng.normal();
    x = static_cast<T>(std::copysign(std::pow(std::abs(normal), power), normal));
  }
  return numbers;
}

/// Every selected element is as large as any other, or larger.
template <class T>
bool are_largest(const std::vector<T>& numbers, const std::vector<std::uint32_t>& chosen) {
  std::vector<bool> is_chosen(numbers.size());
  T least = std::numeric_limits<T>::max();
  for (const std::uint32_t at : chosen) {
    is_chosen[at] = true;
    least = std::min(least, std::abs(numbers[at]));
  }
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (!is_chosen[i] && std::abs(numbers[i]) > least) return false;
  return std::ranges::is_sorted(chosen);
}

}  // namespace

TEST_CASE_TEMPLATE("Thresholds: a sample's leaves 0.7 to 1.3 times as many as wanted, the largest", T, float,
                   double) {
  for (const double power : {1.0, 3.0})
    for (const std::size_t k : {10UL, 300UL, 5'000UL, 40'000UL}) {
      CAPTURE(k);
      const auto numbers = drawn<T>(100'003, k, power);
      std::vector<std::uint32_t> chosen, again;
      select_sampled<T>(numbers, k, 5, chosen);
      CHECK(chosen.size() >= 7 * k / 10);
      CHECK(chosen.size() <= 13 * k / 10);
      CHECK(are_largest(numbers, chosen));
      select_sampled<T>(numbers, k, 5, again);
      CHECK(chosen == again);
    }
}

TEST_CASE_TEMPLATE("Thresholds: halves leave one to two times as many as wanted, the largest", T, float,
                   double) {
  for (const double power : {1.0, 3.0})
    for (const std::size_t k : {10UL, 300UL, 5'000UL}) {
      CAPTURE(k);
      const auto numbers = drawn<T>(100'003, k, power);
      std::vector<std::uint32_t> chosen;
      select_bisected<T>(numbers, k, chosen);
      CHECK(chosen.size() >= k);
      CHECK(chosen.size() <= 2 * k);
      CHECK(are_largest(numbers, chosen));
    }
}

TEST_CASE("Thresholds: zeros, nothing, and what is not a number are never chosen") {
  std::vector<float> numbers(5'000);
  numbers[7] = std::nanf("");
  numbers[9] = INFINITY;
  numbers[11] = 2;
  std::vector<std::uint32_t> chosen;
  select_sampled<float>(numbers, 50, 1, chosen);
  CHECK(chosen == std::vector<std::uint32_t>{11});
  select_bisected<float>(numbers, 50, chosen);
  CHECK(chosen == std::vector<std::uint32_t>{11});
  for (const std::size_t k : {0UL, 5UL}) {
    select_sampled<float>({}, k, 1, chosen);
    CHECK(chosen.empty());
    select_bisected<float>({}, k, chosen);
    CHECK(chosen.empty());
  }
}

TEST_CASE(
    "Compressor multi_level: the largest of the largest are the largest: bit for bit the slot of topk") {
  const ContributionShape shape{Scalar::f32, {60'000, 1'706}, 0};
  const Settings settings = runtime::Config::default_settings();
  for (const double keep : {0.1, 0.01, 0.001})
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      auto numbers = drawn<float>(61'706, seed);
      const Coding coding{&shape, keep, seed, &settings};
      std::vector<std::byte> direct(testing::compressor_named("topk").slot_bytes(shape, keep, settings));
      auto levels = direct;
      testing::compressor_named("topk").encode(coding, view_over(numbers), direct);
      testing::compressor_named("multi_level").encode(coding, view_over(numbers), levels);
      CHECK(levels == direct);
    }
}

TEST_CASE("Compressors dgc and redsync: send about as much of the norm as topk, never more") {
  const ContributionShape shape{Scalar::f32, {61'706}, 0};
  const Settings settings = runtime::Config::default_settings();
  for (const double keep : {0.1, 0.01}) {
    auto numbers = drawn<float>(61'706, 4);
    const auto sent_by = [&](const char* name) {
      const Coding coding{&shape, keep, 1, &settings};
      std::vector<std::byte> slot(testing::compressor_named(name).slot_bytes(shape, keep, settings));
      testing::compressor_named(name).encode(coding, view_over(numbers), slot);
      std::vector<float> sum(numbers.size());
      REQUIRE(testing::compressor_named(name).decode_add(coding, slot, 1, view_over(sum)));
      double squares = 0;
      for (const float x : sum) squares += double{x} * double{x};
      return squares;
    };
    const double most = sent_by("topk");
    for (const char* name : {"dgc", "redsync"}) {
      CHECK(sent_by(name) <= most * 1.002);
      CHECK(sent_by(name) > 0.75 * most);
    }
  }
}
