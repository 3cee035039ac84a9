#include <doctest/doctest.h>

#include <vector>

#include "runtime/train/feature_skew.h"

using namespace rivulet;
using namespace rivulet::runtime;

namespace {

devices::Measured measured(double rows, std::vector<double> mean) {
  return {.rows = rows, .mean = std::move(mean), .square = {}, .beyond = {}};
}

std::vector<devices::Column> seen(double deviation = 2) {
  return std::vector<devices::Column>(
      2, {.rows = 100, .mean = 5, .variance = 4, .shown_mean = 5, .shown_deviation = deviation});
}

/// After N synchronizations of 50 rows of each device.
double largest_after(int agreements, const std::vector<double>& own, const std::vector<double>& all,
                     const std::vector<devices::Column>& columns = seen()) {
  FeatureSkew skew;
  for (int i = 0; i < agreements; ++i) skew.agreed(measured(50, own), measured(50, all), columns);
  return skew.largest();
}

}  // namespace

TEST_CASE("Feature skew: of the feature that differs most, in variances, once there are enough rows") {
  CHECK(largest_after(100, {0.5, -1}, {0.5, 0.4}) == doctest::Approx(1.96).epsilon(0.1));
  CHECK(largest_after(3, {0, -1}, {0, 0.4}) == 0);
  CHECK(largest_after(100, {3, -2}, {3, -2}) == 0);  // all have shifted
}

TEST_CASE("Feature skew: numbers in no deviations say nothing") {
  FeatureSkew skew;
  for (int i = 0; i < 100; ++i) skew.agreed(measured(50, {80, 0}), measured(50, {20, 0}), seen(0));
  CHECK(skew.largest() == 0);
  skew.agreed(measured(50, {80, 0}), measured(50, {20, 0}), seen());  // the model includes it from here on
  CHECK(skew.largest() == 0);
  skew.agreed(measured(50, {1, 0}), measured(50, {0, 0}), seen());
  CHECK(skew.largest() > 0);
}

TEST_CASE("Feature skew: what was is forgotten, and a device without rows learns nothing") {
  FeatureSkew skew;
  for (int i = 0; i < 100; ++i) skew.agreed(measured(50, {2, 0}), measured(50, {0, 0}), seen());
  const double before = skew.largest();
  for (int i = 0; i < 100; ++i) skew.agreed(measured(0, {0, 0}), measured(50, {0, 0}), seen());
  CHECK(skew.largest() == before);
  for (int i = 0; i < 100; ++i) skew.agreed(measured(50, {0, 0}), measured(50, {0, 0}), seen());
  CHECK(skew.largest() < 0.1);
  skew.agreed(measured(50, {1e6, 0}), measured(50, {5e5, 0}), seen());  // a sensor broke
  for (int i = 0; i < 40; ++i) skew.agreed(measured(50, {0, 0}), measured(50, {0, 0}), seen());
  CHECK(skew.largest() < 0.1);
}
