// doctest without main(): programs with their own main() can use helpers with checks.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
