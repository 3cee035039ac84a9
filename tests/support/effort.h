#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace rivulet::testing {

/// Returns `quick`, or `full` under `scripts/test --full` (RIVULET_FULL=1).
int repetitions(int quick, int full);

/// Returns RIVULET_SEED, or `usual` if unset. Tests with random input print their seed when they fail.
std::uint64_t seed_or(std::uint64_t usual);

/// Returns the environment variable `name` as a number, or `usual` if unset.
std::uint64_t number_or(const char* name, std::uint64_t usual);

/// Progress of a long count, by name, in a file in folder SIM_PROGRESS. An interrupted count resumes from it.
/// Without that variable nothing is read or written.
using Counts = std::map<std::string, double>;
Counts load_progress(const std::string& file);
/// Replaces the whole file. Aborts on failure.
void save_progress(const std::string& file, const Counts& counts);

/// Prints `figure: NAME = VALUE UNIT`; the full run copies it to docs/EVIDENCE.md.
void report_figure(const char* name, double value, const char* unit);

}  // namespace rivulet::testing
