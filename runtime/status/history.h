#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "core/posted.h"
#include "core/time.h"

namespace rivulet::runtime {

struct NodeStatus;

/// The last five minutes of the charted values, one sample per second, so that a newly opened page starts
/// with history. One thread writes and any thread reads, without waiting: a reader may see a new value in
/// place of an overwritten old one. Also keeps the last few marks (short texts about events), which a
/// different thread writes. Memory: 8 kB.
class History {
 public:
  enum class Series : std::uint8_t { stream_rate, rows_waiting, batch_rows, loss, accuracy, held_out };
  static constexpr std::size_t series = 6;
  static constexpr std::size_t kept = 300;

  /// Takes a sample, unless the last one is less than a second old.
  void look(const NodeStatus& status, TimePoint now);
  /// Train thread.
  void mark(const std::string& phrase);
  bool publish() { return marks_.publish(); }  ///< see NodeStatus::publish_deferred()
  /// Returns the samples of a series, oldest first; NaN where nothing was measured.
  [[nodiscard]] std::vector<float> read(Series which) const;
  struct Mark {
    std::uint64_t looks_ago = 0;  ///< samples of each series since the mark
    std::string phrase;
  };
  /// Returns the marks within the retained samples, oldest first.
  [[nodiscard]] std::vector<Mark> marks() const;

 private:
  std::array<std::array<std::atomic<float>, kept>, series> values_{};
  std::atomic<std::uint64_t> looks_{0};
  TimePoint next_{};
  static constexpr std::size_t marks_kept = 8;
  struct Made {
    std::uint64_t looks = 0;  ///< samples taken before the mark
    std::string phrase;
  };
  std::vector<Made> made_;  ///< train thread
  Posted<std::vector<Made>> marks_;
};

}  // namespace rivulet::runtime
