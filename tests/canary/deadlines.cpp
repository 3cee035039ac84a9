// Ends in the ways that tests/canary/try_again.sh tells apart.
#include <doctest/doctest.h>

#include <chrono>
#include <stdexcept>

#include "tests/support/wait.h"

using namespace std::chrono_literals;
using rivulet::testing::wait_for_count;
using rivulet::testing::wait_until;

namespace {

bool never() {
  return wait_until([] { return false; }, 1ms);
}

}  // namespace

TEST_CASE("passes") {
  CHECK_FALSE(never());
}

TEST_CASE("a deadline") {
  CHECK(never());
}

TEST_CASE("a deadline that was expected, then a finding") {
  CHECK_FALSE(never());
  CHECK(1 == 2);
}

TEST_CASE("a deadline and a finding") {
  CHECK(never());
  CHECK(1 == 2);
}

TEST_CASE("a look, no wait") {
  CHECK(wait_until([] { return false; }, 0ms));
}

TEST_CASE("a note of the case before") {
  CHECK(1 == 2);
}

TEST_CASE("rows that do not come") {
  CHECK(wait_for_count([] { return 1U; }, 2, 1ms));
}

TEST_CASE("rows too many") {
  CHECK(wait_for_count([] { return 3U; }, 2, 1ms));
}

TEST_CASE("rows that come late") {
  std::uint64_t rows = 0;
  CHECK(wait_for_count([&] { return ++rows / 2; }, 20, 20ms));
}

TEST_CASE("an exception after a deadline") {
  CHECK(never());
  throw std::runtime_error("thrown");
}

TEST_CASE("words after a deadline") {
  CHECK(never());
  FAIL_CHECK("said");
}
