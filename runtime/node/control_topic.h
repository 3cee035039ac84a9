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

/// The control topic of a job as somebody reads it who is not a member: a command, or a device before it
/// joins. Owner: one thread.
class ControlTopic {
 public:
  /// Waits some milliseconds for the broker: the owner of the thread decides how.
  using Pause = std::function<void()>;
  /// "rivulet.mnist.control"
  static std::string name_of(const std::string& job);
  /// `create`: makes it where it is missing. Errors: invalid_config (no brokers), unavailable (no broker
  /// answers, no such topic).
  static Result<ControlTopic> open(const Config& config, bool create, Pause pause);
  /// For tests: over any log.
  ControlTopic(std::string job, std::unique_ptr<OrderedLog> log, Pause pause);

  /// Everything that was in it when it was opened, however long that is. Errors: unavailable (also: nothing
  /// came for `deadline`; its beginning is gone).
  Status read_all(Duration deadline);
  /// Reads and folds the next record; false when there is none now. A broker that went away may come back:
  /// false. Errors: unavailable.
  Result<bool> next();
  /// What next() has read last; nothing if that could not be understood.
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
