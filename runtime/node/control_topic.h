#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/log.h"
#include "runtime/config/config.h"
#include "sync/membership/log_reader.h"

namespace rivulet::runtime {

/// Read access to a job's control topic for non-members: commands, and devices before they join. Owner: one
/// thread.
class ControlTopic {
 public:
  /// Waits a few milliseconds for the broker. The owner of the thread chooses how.
  using Pause = std::function<void()>;
  /// Returns "rivulet.mnist.control" for job "mnist".
  static std::string name_of(const std::string& job);
  /// `create`: creates a missing topic. Errors: invalid_config (no brokers), unavailable (no broker answers,
  /// no such topic).
  static Result<ControlTopic> open(const Config& config, bool create, Pause pause);
  /// For tests: reads any given log.
  ControlTopic(std::string job, std::unique_ptr<OrderedLog> log, Pause pause);

  /// Reads all records that were present at open(). Errors: unavailable (also if no record arrives for
  /// `deadline`, or if the oldest records were deleted).
  Status read_all(Duration deadline);
  /// Reads and folds the next record; false if there is none now, or while the broker is unreachable. Errors:
  /// unavailable.
  Result<bool> next();
  /// Returns the last record read by next(); nullopt if it could not be decoded.
  [[nodiscard]] const std::optional<sync::membership::ControlRecord>& last() const noexcept { return last_; }
  Status append(const sync::membership::ControlRecord& record);
  [[nodiscard]] const sync::membership::Fold& fold() const noexcept { return reader_.fold(); }
  [[nodiscard]] const std::string& job() const noexcept { return job_; }

 private:
  std::string job_;
  std::unique_ptr<OrderedLog> log_;
  Pause pause_;
  sync::membership::LogReader reader_;
  std::optional<sync::membership::ControlRecord> last_;
};

}  // namespace rivulet::runtime
