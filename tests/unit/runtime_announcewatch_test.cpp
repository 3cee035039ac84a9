// Reports that announcements of saved states do not reach the control topic, and that they do again.
#include "runtime/train/announce_watch.h"

#include <doctest/doctest.h>

using namespace rivulet;
using namespace rivulet::runtime;
using namespace std::chrono_literals;
using News = AnnounceWatch::News;

namespace {

TimePoint at(Duration since) {
  return TimePoint{} + since;
}

}  // namespace

TEST_CASE("Announcing: ten seconds without an answer are told once, and so is the next answer") {
  AnnounceWatch watch;
  CHECK(watch.look(at(0s), false, 0) == News::none);
  CHECK(watch.look(at(1s), true, 0) == News::none);
  CHECK(watch.look(at(10'999ms), true, 0) == News::none);
  CHECK(watch.look(at(11s), true, 0) == News::silent);
  CHECK(watch.look(at(40s), true, 0) == News::none);
  CHECK(watch.look(at(41s), false, 1) == News::again);
  CHECK(watch.look(at(42s), false, 1) == News::none);
}

TEST_CASE("Announcing: a view that ends forgets what was said, and that is not an answer") {
  AnnounceWatch watch;
  CHECK(watch.look(at(0s), true, 3) == News::none);
  CHECK(watch.look(at(10s), true, 3) == News::silent);
  CHECK(watch.look(at(11s), false, 3) == News::none);
  CHECK(watch.look(at(12s), true, 3) == News::none);
  CHECK(watch.look(at(30s), true, 3) == News::none);  // reported already
  CHECK(watch.look(at(31s), true, 4) == News::again);
}

TEST_CASE("Announcing: answers that come later than the next state is said are answers") {
  AnnounceWatch watch;
  std::uint64_t read_back = 0;
  for (Duration t = 0s; t < 60s; t += 1s) {
    if (t % 7s == 0s) ++read_back;
    CHECK(watch.look(at(t), true, read_back) == News::none);
  }
}
