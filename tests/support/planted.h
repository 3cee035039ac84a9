#pragma once
#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "sync/transport/transport.h"

namespace rivulet::testing {

/// The byte that plant() leaves in memory. Eight in a row are found in nothing that a device means to write.
inline constexpr std::byte planted{0xb6};
inline constexpr std::size_t planted_run = 8;

/// Leaves the byte in memory of this thread that is free: its stack below the caller, blocks of the heap.
void plant();
/// ... and in the stacks that threads which begin now get.
void plant_in_threads();

[[nodiscard]] bool is_planted(std::span<const std::byte> bytes);

/// What left with planted bytes in it. Thread-safe.
class PlantedFinds {
 public:
  void look_at(const std::string& what, std::span<const std::byte> bytes);
  void add(std::string what);
  [[nodiscard]] std::vector<std::string> found() const;
  [[nodiscard]] std::size_t looked_at() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> found_;
  std::size_t looked_at_ = 0;
};

/// Wires and address book as they are; every message and address is looked at before it leaves, and memory is
/// planted anew before each. `finds` outlives them.
sync::Connect look_for_planted(sync::Connect usual, PlantedFinds& finds);

}  // namespace rivulet::testing
