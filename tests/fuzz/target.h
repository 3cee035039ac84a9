#pragma once
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

/// Fuzz targets: functions that read external bytes. A target is one file tests/fuzz/targets/<name>.cpp that
/// defines `const Target target_<name>`; the build finds it and creates the program fuzz_<name>.
namespace rivulet::fuzz {

using Bytes = std::vector<std::byte>;
using Input = std::span<const std::byte>;

struct Target {
  std::string_view name;
  /// Reads `input` as the product does, and checks the invariants of accepted input (RIVULET_CHECK).
  void (*run)(Input input);
  /// Output of the product's own encoders, as start of a search. Deterministic.
  std::vector<Bytes> (*seeds)();
  /// Corrects checksums, as a careful forger does, so that deeper checks are reached. May be null.
  void (*seal)(Bytes& input) = nullptr;
};

/// All of them, sorted by name.
std::span<const Target* const> targets() noexcept;

}  // namespace rivulet::fuzz
