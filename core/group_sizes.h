#pragma once
#include <cstdint>

namespace rivulet {

/// How many devices a group may have. Equal on all devices. A number converts to a group of fixed size.
struct GroupSizes {
  std::uint32_t min = 1;     ///< with fewer devices the group pauses
  std::uint32_t wanted = 1;  ///< usual number: sizes hyperparameters, and a starting group waits for it
  std::uint32_t max = 1;     ///< further devices wait for a place

  constexpr GroupSizes() = default;
  constexpr GroupSizes(std::uint32_t devices)  // NOLINT(*-explicit-*): job.devices = 4 is a group of four
      : min(devices), wanted(devices), max(devices) {}
  constexpr GroupSizes(std::uint32_t least, std::uint32_t usual, std::uint32_t most)
      : min(least), wanted(usual), max(most) {}

  [[nodiscard]] constexpr bool is_fixed() const noexcept { return min == max; }
  [[nodiscard]] constexpr bool is_valid() const noexcept {
    return 1 <= min && min <= wanted && wanted <= max;
  }
  bool operator==(const GroupSizes&) const = default;
};

}  // namespace rivulet
