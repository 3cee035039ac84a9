#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/log.h"
#include "sync/membership/fold.h"

namespace rivulet::sync::membership {

/// Folds a job's control log from wherever it begins: from its first record, or, where the log has lost that,
/// from the first SNAP in it that can be; those that cannot are counted as ignored. Owner: one thread.
class LogReader {
 public:
  explicit LogReader(std::string job, const Rules& rules = {}) : job_(std::move(job)) { fold_.rules = rules; }

  /// The record if it could be read, whether it counted or not.
  std::optional<ControlRecord> take(const LogEntry& entry);
  [[nodiscard]] const Fold& fold() const noexcept { return fold_; }
  /// False: the beginning of the log is gone and no SNAP has come yet, so nothing of it can be understood.
  [[nodiscard]] bool understands() const noexcept { return first_offset_ <= 0 || based_; }
  [[nodiscard]] std::int64_t first_offset() const noexcept { return first_offset_; }

 private:
  /// Why not, or nothing: the fold is what the SNAP says.
  std::optional<Ignored> begin_at(const Snap& snap, std::int64_t offset);

  const std::string job_;
  Fold fold_;
  std::int64_t first_offset_ = -1;
  bool based_ = false;
};

}  // namespace rivulet::sync::membership
