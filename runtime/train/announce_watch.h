#pragma once
#include <cstdint>
#include <optional>
#include <utility>

#include "core/time.h"

namespace rivulet::runtime {

/// Whether the states that this device saves get into the control topic. A state that is not announced never
/// counts: nothing is committed while the training goes on. Owner: the train thread.
class AnnounceWatch {
 public:
  /// A record of the control topic is read back within milliseconds, and said again after five seconds.
  static constexpr Duration patience = std::chrono::seconds(10);
  enum class News : std::uint8_t { none, silent, again };

  /// `waiting`: a state was said and has not been read back; it is forgotten when its view ends, which is no
  /// answer. `read_back`: how many of this process were. Each change is told once.
  News look(TimePoint now, bool waiting, std::uint64_t read_back) {
    const bool answered = std::exchange(read_back_, read_back) != read_back;
    if (answered || !waiting) since_.reset();
    if (answered && std::exchange(silent_, false)) return News::again;
    if (waiting && !since_) since_ = now;
    if (silent_ || !since_ || now - *since_ < patience) return News::none;
    silent_ = true;
    return News::silent;
  }

 private:
  std::uint64_t read_back_ = 0;
  std::optional<TimePoint> since_;
  bool silent_ = false;
};

}  // namespace rivulet::runtime
