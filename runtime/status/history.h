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

/// The last five minutes of the numbers whose course the page draws, one of each a second, so that who opens
/// the page sees what was before. Written by one thread, read by any; nobody waits: while an old value is
/// replaced a reader may see the new one in its place. Beside them what happened meanwhile, in words: the
/// last few marks, written by another thread. 8 kB.
class History {
 public:
  enum class Series : std::uint8_t { stream_rate, rows_waiting, batch_rows, loss, accuracy, held_out };
  static constexpr std::size_t series = 6;
  static constexpr std::size_t kept = 300;

  /// Takes a look, at most one a second.
  void look(const NodeStatus& status, TimePoint now);
  /// Train thread.
  void mark(const std::string& phrase);
  bool settle() { return marks_.settle(); }  ///< as NodeStatus::settle()
  /// Oldest first; no number where there was none.
  [[nodiscard]] std::vector<float> read(Series which) const;
  struct Mark {
    std::uint64_t looks_ago = 0;  ///< values of each series since then
    std::string phrase;
  };
  /// Those that lie beside a value that is kept, oldest first.
  [[nodiscard]] std::vector<Mark> marks() const;

 private:
  std::array<std::array<std::atomic<float>, kept>, series> values_{};
  std::atomic<std::uint64_t> looks_{0};
  TimePoint next_{};
  static constexpr std::size_t marks_kept = 8;
  struct Made {
    std::uint64_t looks = 0;  ///< until then
    std::string phrase;
  };
  std::vector<Made> made_;  ///< train thread
  Posted<std::vector<Made>> marks_;
};

}  // namespace rivulet::runtime
