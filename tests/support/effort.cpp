#include "tests/support/effort.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace rivulet::testing {
namespace {

const char* variable(const char* name) {
  return std::getenv(name);
}  // NOLINT(concurrency-mt-unsafe)

}  // namespace

int repetitions(int quick, int full) {
  const char* asked = variable("RIVULET_FULL");
  return asked != nullptr && std::string_view(asked) == "1" ? full : quick;
}

std::uint64_t seed_or(std::uint64_t usual) {
  const char* seed = variable("RIVULET_SEED");
  return seed == nullptr ? usual : std::strtoull(seed, nullptr, 10);
}

void report_figure(const char* name, double value, const char* unit) {
  std::printf("figure: %s = %g %s\n", name, value, unit);
  std::fflush(stdout);
}

}  // namespace rivulet::testing
