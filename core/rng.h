#pragma once
#include <cstdint>
#include <string_view>

namespace rivulet {

/// A small seeded generator (xoshiro256**; Blackman and Vigna 2018). The same seed gives the same numbers on
/// every machine.
class Rng {
 public:
  explicit Rng(std::uint64_t seed) noexcept;
  /// Returns an independent generator for a purpose and index, from the job's seed: derive(42, "feeder", 3).
  static Rng derive(std::uint64_t seed, std::string_view purpose, std::uint64_t index = 0) noexcept;

  std::uint64_t next() noexcept;
  /// Uniform in [0, bound); bound > 0.
  std::uint64_t below(std::uint64_t bound) noexcept;
  /// Uniform in [0, 1).
  double uniform() noexcept;
  /// Standard normal (Box-Muller, using one value of the pair).
  double normal() noexcept;

 private:
  std::uint64_t s_[4];
};

/// Returns the 64-bit seed of such a generator, for libraries with their own generators.
std::uint64_t derive_seed(std::uint64_t seed, std::string_view purpose, std::uint64_t index = 0) noexcept;

}  // namespace rivulet
