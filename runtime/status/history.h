#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "core/time.h"

namespace rivulet::runtime {

struct NodeStatus;

/// The last five minutes of the numbers whose course the page draws, one of each a second, so that who opens
/// the page sees what was before. Written by one thread, read by any; nobody waits: while an old value is
/// replaced a reader may see the new one in its place. 7 kB.
class History {
 public:
  enum class Series : std::uint8_t { stream_rate, rows_waiting, batch_rows, loss, accuracy, held_out };
  static constexpr std::size_t series = 6;
  static constexpr std::size_t kept = 300;

  /// Takes a look, at most one a second.
  void look(const NodeStatus& status, TimePoint now);
  /// Oldest first; no number where there was none.
  [[nodiscard]] std::vector<float> read(Series which) const;

 private:
  std::array<std::array<std::atomic<float>, kept>, series> values_{};
  std::atomic<std::uint64_t> looks_{0};
  TimePoint next_{};
};

}  // namespace rivulet::runtime
