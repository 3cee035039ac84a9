#pragma once
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

/// What is fuzzed: functions that read bytes from outside. A target is one file tests/fuzz/targets/<name>.cpp
/// that defines `const Target target_<name>`; the build finds it and makes the program fuzz_<name> of it.
namespace rivulet::fuzz {

using Bytes = std::vector<std::byte>;
using Input = std::span<const std::byte>;

struct Target {
  std::string_view name;
  /// Reads `input` as the product would, and checks what must hold of whatever is accepted (RIVULET_CHECK).
  void (*run)(Input input);
  /// What the product's own encoders write: where a search begins. The same in every run.
  std::vector<Bytes> (*seeds)();
  /// Makes checksums right again, as a careful forger would, so that deeper checks are reached. May be null.
  void (*seal)(Bytes& input) = nullptr;
};

/// All of them, sorted by name.
std::span<const Target* const> targets() noexcept;

}  // namespace rivulet::fuzz
