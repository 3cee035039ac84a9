#pragma once
#include <filesystem>
#include <string>
#include <vector>

/// What the shape of the source tree promises (docs/ARCHITECTURE.md), as functions from a root folder to
/// findings, `path:line: what is wrong`. No findings: the promise holds.
namespace rivulet::testing {

using Findings = std::vector<std::string>;

/// stream, buffer, devices and sync include core only; core nothing of ours; nobody includes tests. Quoted
/// includes are from the root and exist.
Findings check_include_arrows(const std::filesystem::path& root);

/// A third-party header is included only behind its door and never by a header of ours.
Findings check_third_party_doors(const std::filesystem::path& root);

/// Clocks, randomness and sleeping only in the files that are there for them; no shared_ptr of our own.
Findings check_banned_calls(const std::filesystem::path& root);

/// One wiring for production and simulation: only simulation's own files know that it exists.
Findings check_simulation_words(const std::filesystem::path& root);

/// Every metric that code asks for is in core/metrics.def with that kind, and every listed one is used.
Findings check_metric_names(const std::filesystem::path& root);

/// No file of ours has more than 400 lines.
Findings check_file_lengths(const std::filesystem::path& root);

/// Each file of a catalog folder defines its one entry, and no other file of the product names the entry: a
/// decoder, model, policy, compressor or aggregation is added by adding a file.
Findings check_catalogs(const std::filesystem::path& root);

/// In tests LibTorch's headers come before doctest's (both define CHECK), and unit tests do not sleep.
Findings check_tests(const std::filesystem::path& root);

}  // namespace rivulet::testing
