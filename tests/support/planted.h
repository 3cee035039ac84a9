#pragma once
#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "sync/transport/transport.h"

namespace rivulet::testing {

/// The byte that plant() writes to memory. Eight in a row never occur in regular output.
inline constexpr std::byte planted{0xb6};
inline constexpr std::size_t planted_run = 8;

/// Fills free memory of this thread with the byte: the stack below the caller, and heap blocks.
void plant();
/// ... and the stacks of threads that start now.
void plant_in_threads();

[[nodiscard]] bool is_planted(std::span<const std::byte> bytes);

/// Output that contained planted bytes. Thread-safe.
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

/// The usual transport and address book. Checks every message and address before it leaves, and plants memory
/// anew before each. `finds` must outlive them.
sync::Connect look_for_planted(sync::Connect usual, PlantedFinds& finds);

}  // namespace rivulet::testing
