#pragma once
#include <cstdint>

namespace rivulet::testing {

/// `quick` in the ordinary run, `full` under `scripts/test --full` (RIVULET_FULL=1).
int repetitions(int quick, int full);

/// RIVULET_SEED, or `usual` when it is not set. A test that draws prints its seed when it fails.
std::uint64_t seed_or(std::uint64_t usual);

/// Prints `figure: NAME = VALUE UNIT`, which the full run copies into docs/EVIDENCE.md.
void report_figure(const char* name, double value, const char* unit);

}  // namespace rivulet::testing
