#include "runtime/train/step_sketches.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "core/rng.h"

using namespace rivulet;
using namespace rivulet::runtime;

namespace {

GradientView view_over(std::vector<float>& numbers) {
  return {.data = reinterpret_cast<std::byte*>(numbers.data()), .count = numbers.size()};
}

/// The mean gradient of N rows, each `signal` in every element plus noise of this deviation.
std::vector<float> gradient_of(std::size_t rows, double signal, double deviation, Rng& rng) {
  std::vector<float> mean(5000);
  for (float& x : mean)
    x = static_cast<float>(signal + deviation / std::sqrt(static_cast<double>(rows)) * rng.normal());
  return mean;
}

}  // namespace

TEST_CASE(
    "Step sketches: what rows agree on and how far they are from it, planted, to 10 %, whatever the rows of "
    "a "
    "step") {
  constexpr double signal = 0.02;
  constexpr double deviation = 0.1;
  for (const std::size_t rows : {4U, 100U})
    for (const int steps : {2, 3, 8}) {
      INFO(rows, " rows, ", steps, " steps");
      Rng rng(rows + static_cast<std::uint64_t>(steps));
      double g2 = 0;
      double noise = 0;
      constexpr int repeats = 40;
      for (int i = 0; i < repeats; ++i) {
        StepSketches sketches;
        for (int k = 0; k < steps; ++k) {
          auto gradient = gradient_of(rows, signal, deviation, rng);
          sketches.stepped(view_over(gradient), rows);
        }
        g2 += sketches.gradient_signal() / repeats;
        noise += sketches.gradient_noise() / repeats;
      }
      CHECK(g2 == doctest::Approx(5000 * signal * signal).epsilon(0.1));
      CHECK(noise == doctest::Approx(5000 * deviation * deviation).epsilon(0.05));
    }
}

TEST_CASE("Step sketches: one step says nothing, and what was before is forgotten with it") {
  StepSketches sketches;
  Rng rng(1);
  auto gradient = gradient_of(4, 1, 0, rng);
  sketches.stepped(view_over(gradient), 4);
  CHECK(sketches.gradient_signal() == 0);
  CHECK(sketches.gradient_noise() == 0);
  sketches.begin();  // a single step waits for the next one
  sketches.stepped(view_over(gradient), 4);
  CHECK(sketches.gradient_signal() == doctest::Approx(5000).epsilon(0.1));
  CHECK(std::abs(sketches.gradient_noise()) < 5);
  sketches.begin();
  CHECK(sketches.gradient_signal() == 0);
}
