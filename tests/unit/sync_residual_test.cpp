#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/rng.h"
#include "sync/residual/residual.h"
#include "tests/support/dense_exchange.h"
#include "tests/support/parts/parts.h"

using namespace rivulet;
using namespace rivulet::sync;
using testing::view_over;

namespace {

const ContributionShape shape{Scalar::f32, {3, 1}, 1};
constexpr Stamp before{7, 41};
constexpr Stamp after{7, 42};

std::vector<float> numbers_of(const GradientView& view) {
  const auto all = view.as<float>();
  return {all.begin(), all.end()};
}
std::vector<float> kept_by(const Residual& residual) {
  std::vector<float> all(residual.numbers().size() / sizeof(float));
  std::memcpy(all.data(), residual.numbers().data(), residual.numbers().size());
  return all;
}

/// Sends the first element only.
void encode_first(const Coding&, const GradientView& numbers, std::span<std::byte> slot) {
  std::memcpy(slot.data(), numbers.data, slot.size());
}
Status decode_first(const Coding&, std::span<const std::byte> slot, double weight, const GradientView& sum) {
  float first = 0;
  std::memcpy(&first, slot.data(), sizeof first);
  sum.as<float>()[0] += static_cast<float>(weight * double{first});
  return ok();
}
const CompressorEntry first_only{
    .name = "first", .keeps_residual = true, .encode = &encode_first, .decode_add = &decode_first};

/// Has staged half of (2, 4, 8, 16 | 5) and sent its first element.
struct OneRound {
  Residual residual{shape};
  std::vector<float> mine{2, 4, 8, 16, 5};
  OneRound() {
    residual.follow(before, 100);
    send();
  }
  void send() {
    const GradientView staged = residual.stage(view_over(mine), 0.5);
    std::vector<std::byte> slot(4);
    first_only.encode({}, staged, slot);
    residual.sent(first_only, {}, slot);
  }
};

}  // namespace

TEST_CASE("Residual: says where something has left, of what is staged and if it was asked to") {
  Residual residual(shape);
  std::vector<float> mine{2, 4, 8, 16, 5};
  const auto send = [&](bool marks) {
    std::vector<std::byte> slot(4);
    first_only.encode({}, residual.stage(view_over(mine), 0.5, marks), slot);
    residual.sent(first_only, {}, slot);
  };
  CHECK(residual.left().count == 0);
  send(true);
  CHECK(numbers_of(residual.left()) == std::vector<float>{-1, 0, 0, 0});
  CHECK(numbers_of(residual.staged()) == std::vector<float>{0, 2, 4, 8});
  residual.commit();
  CHECK(residual.left().count == 0);
  send(false);
  CHECK(residual.left().count == 0);
}

TEST_CASE("Residual: becomes left of movements, or of gradients again, by what a gradient moves in the end") {
  Residual residual(shape, false, 0.25);
  residual.become(true);
  CHECK(residual.of_deltas());
  CHECK(residual.empty());
  residual.become(false);
  std::vector<float> mine{2, 4, 8, 16, 5};
  residual.stage(view_over(mine), 1);
  residual.commit();
  const double norm = residual.norm();
  residual.become(true);
  CHECK(residual.norm() == doctest::Approx(norm / 4));
  CHECK(numbers_of(residual.stage({}, 0)) == std::vector<float>{0.5, 1, 2, 4, 0});
  residual.drop();
  residual.become(true);
  residual.become(false);
  CHECK(numbers_of(residual.stage({}, 0)) == std::vector<float>{2, 4, 8, 16, 0});
}

TEST_CASE("Residual: stages weighted parameters and the buffers as they are; the contribution stays") {
  Residual residual(shape);
  std::vector<float> mine{2, 4, 8, 16, 5};
  CHECK(residual.empty());
  CHECK(numbers_of(residual.stage(view_over(mine), 0.5)) == std::vector<float>{1, 2, 4, 8, 5});
  CHECK(mine == std::vector<float>{2, 4, 8, 16, 5});
  CHECK(residual.empty());  // nothing is kept before the round ends
  CHECK(residual.numbers().empty());
}

TEST_CASE("Residual: keeps what was not sent when the sum was applied, and nothing new when it was not") {
  OneRound round;
  SUBCASE("applied") {
    round.residual.commit();
    CHECK(kept_by(round.residual) == std::vector<float>{0, 2, 4, 8});
    CHECK(round.residual.norm() == doctest::Approx(std::sqrt(84.0)));
    CHECK_FALSE(round.residual.empty());
    // The next round's contribution is added; without one, the residual remains alone.
    CHECK(numbers_of(round.residual.stage(view_over(round.mine), 0.5)) == std::vector<float>{1, 4, 8, 16, 5});
    CHECK(numbers_of(round.residual.stage({}, 0)) == std::vector<float>{0, 2, 4, 8, 0});
    round.residual.drop();
    CHECK(kept_by(round.residual) == std::vector<float>{0, 2, 4, 8});
  }
  SUBCASE("not applied") {
    round.residual.drop();
    CHECK(round.residual.empty());
    round.residual.commit();  // nothing is staged
    CHECK(round.residual.empty());
  }
}

TEST_CASE("Residual: a weight that was guessed wrong is made good in what is kept") {
  OneRound round;
  round.residual.guess(0.5, 10);
  SUBCASE("by the round") {
    round.residual.reweigh(view_over(round.mine), 0.25);
    round.residual.commit();
  }
  SUBCASE("by the rows of a state that the others have come to") {
    round.residual.follow(before, 100);
    CHECK(round.residual.resolve(after, 140, view_over(round.mine)) == 0);
  }
  // 0.25 * mine, minus the 1 that was sent.
  CHECK(kept_by(round.residual) == std::vector<float>{-0.5, 1, 2, 4});
}

TEST_CASE("Residual: what an unfinished round sent is decided by the state that the next view starts from") {
  OneRound round;
  round.residual.commit();
  round.residual.follow(before, 100);
  const auto kept = kept_by(round.residual);
  round.send();
  SUBCASE("from the state before it: it has not happened") {
    CHECK(round.residual.resolve(before, 100) == 0);
    CHECK(kept_by(round.residual) == kept);
    CHECK(round.residual.stamp() == before);
    CHECK_FALSE(round.residual.is_staged());
  }
  SUBCASE("from the state behind it: what was sent is in there") {
    CHECK(round.residual.resolve(after, 150) == 0);
    CHECK(kept_by(round.residual) == std::vector<float>{0, 4, 8, 16});
    CHECK(round.residual.stamp() == after);
  }
  SUBCASE("from any other: nothing is kept, and its norm is counted") {
    for (const Stamp other : {Stamp{7, 43}, Stamp{8, 42}, Stamp{6, 41}, Stamp{7, 40}}) {
      OneRound lost;
      lost.residual.commit();
      lost.residual.follow(before, 100);
      lost.send();
      CHECK(lost.residual.resolve(other, 150) == doctest::Approx(std::sqrt(84.0)));
      CHECK(lost.residual.empty());
      CHECK(lost.residual.stamp() == other);
      CHECK_FALSE(lost.residual.is_staged());
    }
  }
}

TEST_CASE("Residual: a round that sent nothing of it and that others applied leaves it to nobody") {
  OneRound round;
  round.residual.commit();
  round.residual.follow(before, 100);
  CHECK(round.residual.resolve(after, 150) > 0);
  CHECK(round.residual.empty());
}

TEST_CASE("Residual: a step that trained no row has nothing of what was sent") {
  OneRound round;
  round.residual.commit();
  round.residual.follow(before, 100);
  const auto kept = kept_by(round.residual);
  round.send();
  CHECK(round.residual.resolve(after, 100) == 0);
  CHECK(kept_by(round.residual) == kept);
  CHECK(round.residual.stamp() == after);
}

TEST_CASE("Residual: what is not a number is not kept, and all else is") {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    OneRound round;
    round.mine[2] = bad;
    round.residual.stage(view_over(round.mine), 0.5);
    round.residual.commit();
    CHECK(std::isfinite(round.residual.norm()));
    std::vector<float> kept;
    for (std::size_t i = 0; i < round.mine.size(); ++i)
      kept.push_back(i == 2 || i == 4 ? 0 : round.mine[i] / 2);  // 4 is a buffer
    CHECK(numbers_of(round.residual.stage({}, 0)) == kept);
  }
}

TEST_CASE("Residual: comes back from a saved one, for the state that it was saved with") {
  OneRound round;
  round.residual.commit();
  Residual other(shape);
  other.restore(after, 150, round.residual.numbers(), round.residual.of_deltas());
  CHECK(kept_by(other) == kept_by(round.residual));
  CHECK(other.norm() == round.residual.norm());
  CHECK(other.resolve(after, 150) == 0);
  CHECK_FALSE(other.empty());
  CHECK(other.resolve(before, 100) > 0);
}

TEST_CASE("Residual: all of it can be sent at once") {
  OneRound round;
  round.residual.commit();
  const GradientView all = round.residual.stage({}, 0);
  CHECK(numbers_of(all) == std::vector<float>{0, 2, 4, 8, 0});
  round.residual.sent_all();
  round.residual.commit();
  CHECK(round.residual.empty());
}
