// Whether a group's loss still falls: losses in, verdicts out.
#include "sync/controllers/plateau.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/rng.h"

using namespace rivulet;
using namespace rivulet::sync::policy;

namespace {

struct Watch {
  std::vector<double> memory = std::vector<double>(Plateau::numbers);
  Plateau plateau{memory};
  /// Synchronizations of 512 rows each, until the plateau is reached; maximum N.
  template <class Loss>
  int agreements(int most, double noise, Loss loss) {
    for (int i = 0; i < most; ++i) {
      plateau.add(512 * loss(i), 512, noise);
      if (plateau.reached()) return i + 1;
    }
    return most;
  }
};

}  // namespace

TEST_CASE("Plateau: is reached by a loss that has fallen and stays, after some means of thousands of rows") {
  Watch watch;
  const int n = watch.agreements(1000, 0, [](int i) { return i < 8 ? 2.0 : 0.5; });
  CHECK(n == 1 + 8 + 5 * 8);  // one mean sets the mark, four are not below
}

TEST_CASE("Plateau: is not reached while the loss falls, however slowly, nor where it has never fallen") {
  Watch falls;
  CHECK(falls.agreements(4000, 0, [](int i) { return 2 * std::pow(0.998, i); }) >
        1200);  // until less than a tenth is left, of which four means lose little
  Watch never;
  CHECK(never.agreements(4000, 0, [](int) { return 2.3; }) == 1 + 8 + 16 * 8);
}

TEST_CASE("Plateau: chance neither hides a loss that falls, nor one that stays") {
  Rng rng(5);
  // The mean of 512 rows that vary by four times their loss.
  const auto chance = [&] { return 1 + 4 * rng.normal() / std::sqrt(512.0); };
  Watch falls;
  CHECK(falls.agreements(700, 16, [&](int i) { return std::pow(0.995, i) * chance(); }) == 700);
  Watch stays;
  const int n = stays.agreements(4000, 16, [&](int i) { return (i < 16 ? 1 : 0.3) * chance(); });
  CHECK(n > 50);
  CHECK(n < 800);
}

TEST_CASE("Plateau: a loss that has fallen to nothing has nothing left to fall, though it still halves") {
  Watch watch;
  const int n = watch.agreements(1000, 0, [](int i) { return i < 8 ? 1 : 0.003 * std::pow(0.95, i); });
  CHECK(n == 1 + 16);
}

TEST_CASE("Plateau: ends when the loss rises, and begins anew where the stream has changed") {
  Watch rises;
  const auto low = [](int i) { return i < 8 ? 2.0 : 0.5; };
  rises.agreements(1000, 0, low);
  REQUIRE(rises.plateau.reached());
  for (int i = 0; i < 8; ++i) rises.plateau.add(512 * 0.7, 512, 0);
  CHECK_FALSE(rises.plateau.reached());
  Watch by_chance;
  by_chance.agreements(1000, 0, low);
  for (int i = 0; i < 64; ++i) by_chance.plateau.add(512 * 0.65, 512, 64);  // of 25 600 rows: 0.5 +- 0.025
  CHECK_FALSE(by_chance.plateau.reached());
  Watch vague;
  vague.agreements(1000, 0, low);
  for (int i = 0; i < 64; ++i) vague.plateau.add(512 * 0.65, 512, 256);  // ... +- 0.045
  CHECK(vague.plateau.reached());
  Watch changed;
  changed.agreements(1000, 0, low);
  changed.plateau.restart();
  CHECK_FALSE(changed.plateau.reached());
  CHECK(changed.agreements(1000, 0, [](int) { return 0.5; }) == 5 * 8);
}

TEST_CASE("Plateau: rounds without rows and numbers that are none change nothing") {
  Watch watch;
  watch.agreements(1000, 0, [](int i) { return i < 8 ? 2.0 : 0.5; });
  const auto before = watch.memory;
  watch.plateau.add(0, 0, 0);
  watch.plateau.add(-1, 10, 0);
  CHECK(watch.memory == before);
  watch.plateau.add(std::numeric_limits<double>::quiet_NaN(), 10, std::numeric_limits<double>::infinity());
  watch.plateau.add(std::numeric_limits<double>::max(), 4096, 0);
  watch.plateau.add(std::numeric_limits<double>::max(), 4096, 0);
  for (const double value : watch.memory) CHECK(std::isfinite(value));
}

TEST_CASE("Plateau: a first loss that says nothing does not make all others nothing") {
  Watch watch;
  const int n = watch.agreements(100, 0, [](int i) { return i == 0 ? 1e9 : 3600 * std::pow(0.99, i); });
  CHECK(n == 100);
  CHECK(watch.plateau.nothing() < 1000);
}
