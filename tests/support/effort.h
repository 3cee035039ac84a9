#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace rivulet::testing {

/// `quick` in the ordinary run, `full` under `scripts/test --full` (RIVULET_FULL=1).
int repetitions(int quick, int full);

/// RIVULET_SEED, or `usual` when it is not set. A test that draws prints its seed when it fails.
std::uint64_t seed_or(std::uint64_t usual);

/// `usual`, or the number in the environment variable `name`.
std::uint64_t number_or(const char* name, std::uint64_t usual);

/// What a long count has done so far, so that one that was cut short goes on where it was: numbers by name,
/// in a file in the folder SIM_PROGRESS. Without that variable nothing is known and nothing is kept.
using Counts = std::map<std::string, double>;
Counts load_progress(const std::string& file);
/// Replaces the file as a whole. Aborts if it cannot be written.
void save_progress(const std::string& file, const Counts& counts);

/// Prints `figure: NAME = VALUE UNIT`, which the full run copies into docs/EVIDENCE.md.
void report_figure(const char* name, double value, const char* unit);

}  // namespace rivulet::testing
