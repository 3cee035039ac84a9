#include <deque>
#include <mutex>

#include "sync/membership/membership.h"

namespace rivulet::sync::membership {

namespace {

constexpr std::size_t log_max_records = 1'000'000;

using Bytes = std::vector<std::byte>;

}  // namespace

struct MemoryLog::State {
  struct Record {
    std::int64_t time_ms = 0;
    Bytes bytes;
  };
  mutable std::mutex mutex;
  std::deque<Record> records;  ///< index = offset
};

namespace {

/// One reader. It shares the records with the others, which may outlive the MemoryLog.
template <class State>
class MemoryLogEnd final : public OrderedLog {
 public:
  MemoryLogEnd(std::shared_ptr<State> state, const Clock* clock) : state_(std::move(state)), clock_(clock) {
    const std::lock_guard lock(state_->mutex);
    existed_ = state_->records.size();
  }

  Status append(std::span<const std::byte> bytes) override {
    if (bytes.size() > record_max_bytes) {
      return Error{ErrorCode::unavailable, "control records are limited to 64 KiB, this one has " +
                                               std::to_string(bytes.size()) + " bytes"};
    }
    const std::lock_guard lock(state_->mutex);
    if (state_->records.size() >= log_max_records)
      return Error{ErrorCode::unavailable, "the in-memory log is full"};
    const auto since = clock_ == nullptr ? Duration(0) : clock_->now().time_since_epoch();
    const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
    state_->records.push_back({time, Bytes(bytes.begin(), bytes.end())});
    return ok();
  }

  Result<std::span<const LogEntry>> poll(std::size_t max_entries) override {
    copies_.clear();
    entries_.clear();
    const std::lock_guard lock(state_->mutex);
    const std::size_t end = std::min(state_->records.size(), next_ + max_entries);
    for (; next_ < end; ++next_) {
      const auto& record = state_->records[next_];
      copies_.push_back(record.bytes);
      entries_.push_back({static_cast<std::int64_t>(next_), record.time_ms, copies_.back()});
    }
    return std::span<const LogEntry>(entries_);
  }

  [[nodiscard]] bool caught_up() const override { return next_ >= existed_; }

 private:
  std::shared_ptr<State> state_;
  const Clock* const clock_;
  std::size_t existed_ = 0;
  std::size_t next_ = 0;
  std::deque<Bytes> copies_;  // a deque keeps the spans in entries_ valid while it grows
  std::vector<LogEntry> entries_;
};

}  // namespace

MemoryLog::MemoryLog() : state_(std::make_shared<State>()) {}
MemoryLog::~MemoryLog() = default;

std::unique_ptr<OrderedLog> MemoryLog::open(const Clock* clock) {
  return std::make_unique<MemoryLogEnd<State>>(state_, clock);
}

std::size_t MemoryLog::size() const {
  const std::lock_guard lock(state_->mutex);
  return state_->records.size();
}

}  // namespace rivulet::sync::membership
