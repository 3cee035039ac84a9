// Only finite sums are applied: one non-finite value, at any position, in either type, prevents it.
#include <doctest/doctest.h>

#include <limits>
#include <utility>
#include <vector>

#include "runtime/state/round_update.h"

using namespace rivulet;
using namespace rivulet::runtime;

namespace {

template <class T>
GradientView view_of(std::vector<T>& numbers) {
  return {.data = reinterpret_cast<std::byte*>(numbers.data()),
          .count = numbers.size(),
          .scalar = sizeof(T) == 4 ? Scalar::f32 : Scalar::f64};
}

}  // namespace

TEST_CASE_TEMPLATE("Round update: one number that is none makes a sum not finite, wherever it stands", T,
                   float, double) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> numbers(37, T(0.5));
  numbers[3] = Limits::max();
  numbers[5] = Limits::lowest();
  numbers[7] = Limits::denorm_min();
  numbers[9] = T(-0.0);
  CHECK(all_finite(view_of(numbers)));
  for (const T none : {Limits::quiet_NaN(), -Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()})
    for (std::size_t at = 0; at < numbers.size(); ++at) {
      CAPTURE(none);
      CAPTURE(at);
      const T had = std::exchange(numbers[at], none);
      CHECK_FALSE(all_finite(view_of(numbers)));
      numbers[at] = had;
    }
  std::vector<T> empty;
  CHECK(all_finite(view_of(empty)));
}
