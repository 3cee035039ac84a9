#pragma once
#include <cstdint>
#include <optional>
#include <utility>

#include "core/time.h"

namespace rivulet::runtime {

/// Checks that the states saved by this device reach the control topic. A state that is not announced is
/// never committed, although training continues. Owner: the train thread.
class AnnounceWatch {
 public:
  /// A record in the control topic is normally read back within milliseconds. If not, it is sent again after
  /// five seconds.
  static constexpr Duration patience = std::chrono::seconds(10);
  enum class News : std::uint8_t { none, silent, again };

  /// `waiting`: an announced state has not been read back. It also becomes false when the state's view ends,
  /// which does not confirm the state. `read_back`: number of this process's announcements read back. Each
  /// change is returned only once.
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
