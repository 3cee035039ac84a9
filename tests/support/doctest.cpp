// doctest itself, apart from main(): a program with a main() of its own may use helpers that check.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
