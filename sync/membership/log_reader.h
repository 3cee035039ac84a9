#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/log.h"
#include "sync/membership/fold.h"

namespace rivulet::sync::membership {

/// Folds a job's control log from its first record or, if that is missing, from the first usable SNAP.
/// Unusable SNAPs are counted as ignored. Owner: one thread.
class LogReader {
 public:
  explicit LogReader(std::string job, const Rules& rules = {}) : job_(std::move(job)) { fold_.rules = rules; }

  /// Returns the decoded record, whether it counted or not.
  std::optional<ControlRecord> take(const LogEntry& entry);
  [[nodiscard]] const Fold& fold() const noexcept { return fold_; }
  /// False if the beginning of the log is missing and no SNAP has been read, so the log is unusable.
  [[nodiscard]] bool understands() const noexcept { return first_offset_ <= 0 || based_; }
  [[nodiscard]] std::int64_t first_offset() const noexcept { return first_offset_; }

 private:
  /// Starts from the SNAP's fold. Returns the reason if the SNAP is unusable.
  std::optional<Ignored> begin_at(const Snap& snap, const LogEntry& entry);

  const std::string job_;
  Fold fold_;
  std::int64_t first_offset_ = -1;
  bool based_ = false;
};

}  // namespace rivulet::sync::membership
