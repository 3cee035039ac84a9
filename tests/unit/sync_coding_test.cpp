// Sparse vectors in few bits: the selection of the largest elements, their positions, their values.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "core/rng.h"
#include "sync/coding/positions.h"
#include "sync/coding/selection.h"
#include "sync/coding/values.h"

using namespace rivulet;
using namespace rivulet::sync;

namespace {

/// The largest first; of equal ones the lower positions; neither zeros nor non-finite values.
template <class T>
std::vector<std::uint32_t> by_size(const std::vector<T>& numbers) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < numbers.size(); ++i)
    if (std::isfinite(numbers[i]) && numbers[i] != 0) all.push_back(i);
  std::stable_sort(all.begin(), all.end(),
                   [&](auto a, auto b) { return std::abs(numbers[a]) > std::abs(numbers[b]); });
  return all;
}

/// The selection by a sort.
std::vector<std::uint32_t> first_of(std::vector<std::uint32_t> by_size, std::size_t k) {
  by_size.resize(std::min(k, by_size.size()));
  std::sort(by_size.begin(), by_size.end());
  return by_size;
}

std::vector<std::uint32_t> drawn_positions(std::size_t count, double share, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<std::uint32_t> positions;
  for (std::uint32_t i = 0; i < count; ++i)
    if (rng.uniform() < share) positions.push_back(i);
  return positions;
}

std::vector<std::byte> written(const std::vector<std::uint32_t>& positions, const PositionCost& how) {
  std::vector<std::byte> bytes((how.bits + 7) / 8);
  BitWriter out(bytes);
  put_positions(positions, how, out);
  CHECK(out.bits() == how.bits);
  return bytes;
}

double entropy_bits(std::size_t entries, std::size_t count) {
  const double p = static_cast<double>(entries) / static_cast<double>(count);
  return -static_cast<double>(count) * (p * std::log2(p) + (1 - p) * std::log2(1 - p));
}

}  // namespace

TEST_CASE_TEMPLATE("Selection: takes what a sort would take, whatever the numbers are", T, float, double) {
  Rng rng(4);
  std::vector<std::vector<T>> cases;
  for (const std::size_t count : {1U, 31U, 32U, 33U, 1000U, 40'000U, 131'077U}) {
    std::vector<T> normal(count), ties(count), spikes(count), near(count);
    for (std::size_t i = 0; i < count; ++i) {
      normal[i] = static_cast<T>(rng.normal());
      ties[i] = static_cast<T>(static_cast<int>(rng.below(5)) - 2);
      // A sample at equal distances contains few of the large ones. Sizes differ only in the last bit,
      // between two that are far away.
      near[i] = i % 3 == 0 ? std::nextafter(T{1}, T{2}) : T{1};
      spikes[i] = static_cast<T>(i % 8 == 3 ? 100 * rng.normal() : 1e-3 * rng.normal());
    }
    cases.push_back(normal);
    cases.push_back(ties);
    near.front() = T{1000};
    near.back() = T{0.001};
    cases.push_back(near);
    cases.push_back(spikes);
    cases.push_back(std::vector<T>(count, T{1}));
    cases.push_back(std::vector<T>(count, T{0}));
    normal[0] = std::numeric_limits<T>::quiet_NaN();
    normal[count / 2] = -std::numeric_limits<T>::infinity();
    normal[count - 1] = std::numeric_limits<T>::max();
    cases.push_back(normal);
  }
  std::vector<std::uint32_t> chosen;
  for (const auto& numbers : cases) {
    const auto ordered = by_size(numbers);
    for (const double share : {0.0, 0.001, 0.01, 0.2, 0.9, 1.0}) {
      const auto k = static_cast<std::size_t>(std::ceil(share * static_cast<double>(numbers.size())));
      select_largest(std::span<const T>(numbers), k, chosen);
      CAPTURE(numbers.size());
      CAPTURE(k);
      CHECK(chosen == first_of(ordered, k));
    }
  }
}

TEST_CASE("Selection: as many as wanted, also where all that is sampled is large and nothing else") {
  const std::size_t count = 1U << 18;
  Rng rng(6);
  std::vector<std::uint32_t> chosen;
  for (std::size_t apart = 2; apart <= 512; apart *= 2) {
    std::vector<float> numbers(count);
    for (std::size_t i = 0; i < count; ++i)
      numbers[i] = static_cast<float>(i % apart == apart / 2 ? 100 : rng.uniform());
    const std::size_t k = std::min(count, count / apart * 7 / 5);
    select_largest(std::span<const float>(numbers), k, chosen);
    CAPTURE(apart);
    CHECK(chosen == first_of(by_size(numbers), k));
  }
}

TEST_CASE("Positions: come back, take the bits that were said, and hardly more than their entropy") {
  for (const double share : {0.0005, 0.001, 0.01, 0.1, 0.5, 1.0}) {
    CAPTURE(share);
    const std::size_t count = 300'000;
    const auto positions = drawn_positions(count, share, 3);
    const auto cost = cost_of_positions(positions);
    const auto bytes = written(positions, cost);
    BitReader in(bytes);
    std::vector<std::uint32_t> back;
    REQUIRE(get_positions(in, cost.code, positions.size(), count, back));
    CHECK(back == positions);
    CHECK(in.bits() == cost.bits);
    if (share == 1.0) continue;
    CHECK(static_cast<double>(cost.bits) < 1.06 * entropy_bits(positions.size(), count));
    CHECK(
        static_cast<double>(cost.bits) ==
        doctest::Approx(expected_position_bits(static_cast<double>(positions.size()), count)).epsilon(0.02));
  }
}

TEST_CASE("Positions: those that lie together take less than random ones, by either code") {
  std::vector<std::uint32_t> layers;  // one layer in ten has entries, at random
  for (const std::uint32_t at : drawn_positions(30'000, 0.1, 5)) layers.push_back(270'000 + at);
  CHECK(static_cast<double>(cost_of_positions(layers).bits) < 0.7 * entropy_bits(layers.size(), 300'000));
  std::vector<std::uint32_t> runs;  // pairs far from each other: a Rice code suits neither gap
  for (std::uint32_t i = 0; i < 1000; ++i)
    for (std::uint32_t k = 0; k < 9; ++k) runs.push_back(i * 16'000 + k);
  const auto cost = cost_of_positions(runs);
  CHECK(cost.code == PositionCode::varint);
  const auto bytes = written(runs, cost);
  BitReader in(bytes);
  std::vector<std::uint32_t> back;
  CHECK(get_positions(in, cost.code, runs.size(), 16'000'000, back));
  CHECK(back == runs);
}

TEST_CASE("Positions: bits that a peer makes up give ascending positions below the count, or none") {
  Rng rng(8);
  std::vector<std::uint32_t> positions;
  for (int i = 0; i < 5000; ++i) {
    std::vector<std::byte> bytes(rng.below(64));
    for (auto& b : bytes) b = static_cast<std::byte>(rng.below(256));
    BitReader in(bytes);
    const std::size_t count = 1 + rng.below(2000);
    const auto code = i % 2 == 0 ? PositionCode::rice : PositionCode::varint;
    if (!get_positions(in, code, rng.below(200), count, positions)) continue;
    for (std::size_t k = 0; k < positions.size(); ++k) {
      CHECK(positions[k] < count);
      if (k > 0) CHECK(positions[k] > positions[k - 1]);
    }
  }
  BitReader empty(std::span<const std::byte>{});
  CHECK_FALSE(get_positions(empty, PositionCode::rice, 1, 10, positions));
  CHECK_FALSE(get_positions(empty, PositionCode::rice, 11, 10, positions));
}

TEST_CASE("Values: a half is the nearest that there is, the even one of two, and never an infinity") {
  std::vector<double> halves;  // all finite ones, ascending
  for (std::uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const float value = of_half(static_cast<std::uint16_t>(bits));
    CHECK(half_of(value) == bits);
    CHECK(half_of(-value) == (bits | 0x8000U));
    halves.push_back(value);
  }
  CHECK(halves[1] == doctest::Approx(std::exp2(-24)));
  CHECK(halves.back() == 65504);
  for (std::size_t i = 0; i + 1 < halves.size(); ++i) {
    const auto between = static_cast<float>((halves[i] + halves[i + 1]) / 2);  // exact
    CHECK(half_of(between) == (i % 2 == 0 ? i : i + 1));
    CHECK(half_of(std::nextafter(between, 1e9F)) == i + 1);
    CHECK(half_of(std::nextafter(between, 0.0F)) == i);
  }
  CHECK(half_of(1e30F) == 0x7bff);
  CHECK(half_of(-std::numeric_limits<float>::max()) == 0xfbff);
}

TEST_CASE("Values: each code comes back as near as its bits allow") {
  Rng rng(6);
  std::vector<float> values(600);
  std::vector<std::uint32_t> group(600);
  for (std::size_t i = 0; i < values.size(); ++i) {
    group[i] = static_cast<std::uint32_t>(i / 200);
    values[i] = static_cast<float>(rng.normal() * std::pow(10.0, group[i]));
  }
  values[7] = 3e38F;  // rounded like the others, its bfloat16 would be infinite
  group[7] = 3;
  for (const char* name : {"f32", "f16", "bf16", "i8", "sign"}) {
    CAPTURE(name);
    const auto code = *value_code_of(name);
    std::vector<std::byte> bytes(600 * bits_of(code) / 8 + (has_scales(code) ? 16 : 0));
    BitWriter out(bytes);
    put_values(values, group, 4, code, out);
    CHECK(out.bits() == 8 * bytes.size());
    BitReader in(bytes);
    std::vector<float> back(600);
    REQUIRE(get_values(in, group, 4, code, back));
    double largest[4] = {};
    double sums[4] = {};
    for (std::size_t i = 0; i < values.size(); ++i) {
      largest[group[i]] = std::max<double>(largest[group[i]], std::abs(values[i]));
      sums[group[i]] += std::abs(values[i]);
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i == 7 && (code == ValueCode::f16)) continue;
      const double x = values[i];
      const double off = std::abs(back[i] - x);
      if (code == ValueCode::f32) CHECK(off == 0);
      if (code == ValueCode::f16) CHECK(off <= std::abs(x) / 2048 + 3e-8);
      if (code == ValueCode::bf16) CHECK(off <= std::abs(x) / 256 * 1.01);
      if (code == ValueCode::i8) CHECK(off <= largest[group[i]] / 254 * 1.0001);
      if (code == ValueCode::sign && i != 7)
        CHECK(back[i] * x ==
              doctest::Approx(std::abs(x) * sums[group[i]] / (group[i] == 0 ? 199 : 200)).epsilon(1e-4));
    }
  }
  CHECK_FALSE(value_code_of("i4"));
}

TEST_CASE("Values: scales and numbers that are none are refused") {
  const std::vector<std::uint32_t> group(1);
  std::vector<float> back(1);
  for (const float scale :
       {-1.0F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<std::byte> bytes(5);
    BitWriter out(bytes);
    out.put(std::bit_cast<std::uint32_t>(scale), 32);
    out.put(1, 8);
    BitReader in(bytes);
    CHECK_FALSE(get_values(in, group, 1, ValueCode::i8, back));
  }
  std::vector<std::byte> infinite(2);
  BitWriter out(infinite);
  out.put(0x7c00, 16);
  BitReader in(infinite);
  CHECK_FALSE(get_values(in, group, 1, ValueCode::f16, back));
  BitReader short_one(std::span<const std::byte>(infinite).first(1));
  CHECK_FALSE(get_values(short_one, group, 1, ValueCode::f16, back));
}
