// Condition for an early synchronization: the change of a device's gradients.
#include <doctest/doctest.h>

#include "runtime/train/norm_watch.h"

using namespace rivulet::runtime;

namespace {

const rivulet::sync::policy::Schedule above_a_third{
    .local = rivulet::sync::policy::LocalSchedule{.early = rivulet::sync::policy::EarlySync{0.3}}};

/// State after 30 steps of 16 rows whose gradients have this squared norm, and a synchronization.
NormWatch used_to(double norm2) {
  NormWatch norms;
  for (int i = 0; i < 30; ++i) norms.add(norm2, 0.16, 16);
  norms.agreed();
  return norms;
}

}  // namespace

TEST_CASE("Norms: a device calls when its gradients change, the first time, and until the group has agreed") {
  NormWatch norms;
  norms.add(10, 0.16, 16);
  CHECK(norms.requests_sync(above_a_third));
  CHECK_FALSE(norms.requests_sync({.local = rivulet::sync::policy::LocalSchedule{}}));
  norms.agreed();
  norms.add(11, 0.16, 16);
  CHECK(norms.change() == doctest::Approx(0.016));
  CHECK_FALSE(norms.requests_sync(above_a_third));
  norms = used_to(10);
  norms.add(40, 0.16, 16);
  CHECK(norms.change() == doctest::Approx(0.48));
  norms.add(10, 0.16, 16);
  CHECK(norms.requests_sync(above_a_third));
  norms.agreed();
  CHECK(norms.change() == 0);
}

TEST_CASE("Norms: a batch of another size is not a change of the gradients, and what follows it is seen") {
  for (const std::size_t rows : {4, 64}) {
    CAPTURE(rows);
    NormWatch norms = used_to(10);
    const double now = rows == 4 ? 40 : 2.5;  // all of it was noise
    for (int i = 0; i < 5; ++i) norms.add(now, 0.16, rows);
    CHECK(norms.change() == 0);
    norms.add(4 * now, 0.16, rows);
    CHECK(norms.change() == doctest::Approx(0.48));
  }
  NormWatch nearly = used_to(10);  // batches of a stream are never exactly equal
  nearly.add(40, 0.16, 20);
  CHECK(nearly.requests_sync(above_a_third));
}

TEST_CASE("Norms: what is not a number changes nothing") {
  NormWatch norms = used_to(10);
  norms.add(std::nan(""), 0.16, 16);
  CHECK(norms.change() == 0);
  norms.add(10, 0.16, 16);
  CHECK(norms.change() == 0);
}
