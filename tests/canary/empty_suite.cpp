// A suite that checks nothing: tests/support/main.cpp must not call it a success.
#include <doctest/doctest.h>

TEST_CASE("Canary: nothing is checked here") {}
