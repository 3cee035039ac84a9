// Loops compiled for several vector units have the bits of the plain loop, at every length.
#include <doctest/doctest.h>

#include <cstring>
#include <limits>

#include "core/rng.h"
#include "devices/numbers.h"
#include "runtime/state/round_update.h"
#include "sync/coding/weighted_numbers.h"

using namespace rivulet;

namespace {

constexpr std::size_t longest = 70;

struct Floats {
  std::vector<float> values = std::vector<float>(longest);
  explicit Floats(std::uint64_t seed) {
    Rng rng(seed);
    for (float& v : values) v = static_cast<float>(rng.uniform() * 4 - 2);
  }
  GradientView view(std::size_t n) {
    return {.data = reinterpret_cast<std::byte*>(values.data()), .count = n};
  }
};

}  // namespace

TEST_CASE("Numbers: the squared norm adds in eight lanes, whatever the vector unit") {
  Floats x(1);
  for (std::size_t n = 0; n <= longest; ++n) {
    double lanes[8] = {}, sum = 0;
    for (std::size_t i = 0; i < n / 8 * 8; ++i)
      lanes[i % 8] += static_cast<double>(x.values[i]) * static_cast<double>(x.values[i]);
    for (std::size_t i = n / 8 * 8; i < n; ++i)
      sum += static_cast<double>(x.values[i]) * static_cast<double>(x.values[i]);
    for (const double lane : lanes) sum += lane;
    CHECK(devices::norm2(x.view(n)) == sum);
  }
}

TEST_CASE("Numbers: weighted bytes are rounded once and added number by number, at any address") {
  Floats x(2), sum(3);
  std::vector<std::byte> bytes(longest * sizeof(float) + 1);
  for (std::size_t n = 0; n <= longest; ++n) {
    const std::vector<float> before = sum.values;
    sync::scale_to(x.view(n), 0.3, bytes.data() + 1);
    sync::add_from(bytes.data() + 1, sum.view(n));
    for (std::size_t i = 0; i < longest; ++i) {
      const float scaled = static_cast<float>(0.3 * static_cast<double>(x.values[i]));
      CHECK(sum.values[i] == (i < n ? before[i] + scaled : before[i]));
    }
  }
}

TEST_CASE("Numbers: one that is not finite is found at every place") {
  for (const float wrong : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()})
    for (std::size_t i = 0; i < longest; ++i) {
      Floats x(4);
      x.values[i] = wrong;
      CHECK_FALSE(runtime::all_finite(x.view(longest)));
      CHECK(runtime::all_finite(x.view(i)));
      x.values[i] = std::numeric_limits<float>::max();
      CHECK(runtime::all_finite(x.view(longest)));
    }
}
