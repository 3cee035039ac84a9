#pragma once
#include <filesystem>
#include <string>
#include <vector>

/// Rules of the source tree (docs/ARCHITECTURE.md), as functions from a root folder to findings, `path:line:
/// description`. No findings: the rule holds.
namespace rivulet::testing {

using Findings = std::vector<std::string>;

/// stream, buffer, devices and sync include only core; core includes none of them; nothing includes tests.
/// Quoted includes start at the root and exist.
Findings check_include_arrows(const std::filesystem::path& root);

/// A third-party header is included only in its wrapper, and never in one of our headers.
Findings check_third_party_doors(const std::filesystem::path& root);

/// Clocks, randomness and sleep only in dedicated files; no shared_ptr of our own.
Findings check_banned_calls(const std::filesystem::path& root);

/// Production and simulation use the same wiring: only simulation's own files refer to it.
Findings check_simulation_words(const std::filesystem::path& root);

/// Every metric in code is in core/metrics.def with that kind, and every listed one is used.
Findings check_metric_names(const std::filesystem::path& root);

/// No file has more than 400 lines.
Findings check_file_lengths(const std::filesystem::path& root);

/// Each file of a catalog folder defines one entry, and no other file of the product names it: adding a file
/// adds a decoder, model, policy, compressor or aggregation.
Findings check_catalogs(const std::filesystem::path& root);

/// In tests LibTorch's headers precede doctest's (both define CHECK), and unit tests do not sleep.
Findings check_tests(const std::filesystem::path& root);

}  // namespace rivulet::testing
