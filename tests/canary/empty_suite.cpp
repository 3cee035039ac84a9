// A suite without checks: tests/support/main.cpp must report a failure.
#include <doctest/doctest.h>

TEST_CASE("Canary: nothing is checked here") {}
