#pragma once
#include <cstdint>
#include <deque>

namespace rivulet::stream::feeding {

/// Bytes of one partition that were sent but not yet committed by its reader. The embedded broker deletes the
/// oldest data of a partition beyond 5 MB, so uncommitted data must stay well below that.
class Window {
 public:
  /// `end`: next offset of the partition before the first record is sent.
  Window(std::int64_t end, std::size_t limit) : first_(end), limit_(limit) {}
  [[nodiscard]] bool has_room(std::size_t bytes) const noexcept {
    return sizes_.empty() || outstanding_ + bytes + overhead <= limit_;
  }
  void sent(std::size_t bytes) {
    sizes_.push_back(bytes + overhead);
    outstanding_ += bytes + overhead;
  }
  /// Reports the reader's next offset; -1 = nothing committed.
  void committed(std::int64_t next) noexcept {
    for (; first_ < next && !sizes_.empty(); ++first_) {
      outstanding_ -= sizes_.front();
      sizes_.pop_front();
    }
  }
  [[nodiscard]] std::size_t outstanding() const noexcept { return outstanding_; }

 private:
  static constexpr std::size_t overhead =
      72;  ///< per record in its own batch: 61 bytes of batch header, about 10 of record framing
  std::int64_t first_;
  std::size_t limit_;
  std::size_t outstanding_ = 0;
  std::deque<std::size_t> sizes_;
};

}  // namespace rivulet::stream::feeding
