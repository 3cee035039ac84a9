#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "stream/kafka/anchors.h"
#include "stream/kafka/log_probe.h"
#include "stream/kafka/partitions.h"

namespace rivulet::stream::kafka {

/// Is the log of a partition still the one that was read before? Offsets do not show it: a topic that was
/// deleted and made anew gives other records under the same numbers, without a word from the broker or the
/// client (librdkafka 2.0 knows neither topic ids nor leader epochs). So a record of each partition is
/// remembered, in memory and in a file, and looked up again every now and then. A partition is trusted for a
/// while after each look; when that is over, its next record waits for the next look. One to which nothing
/// comes is looked at, too, half as often: what it waits for may come to a log that is not its own. Owner:
/// the ingest thread. Cost: see LogProbe, once in `every` while records come.
class SameLog {
 public:
  struct Setup {
    Properties properties;
    std::string group_id;
    std::string file;  ///< empty: only in memory
    Duration every = std::chrono::seconds(30);
    Duration hold_at_most = std::chrono::seconds(2);
  };
  /// `partitions` must outlive this.
  SameLog(Setup setup, const Clock& clock, Partitions& partitions);

  void disable() noexcept { enabled_ = false; }  ///< of brokers that keep nothing anyway
  /// The partition is read on from where an earlier process stood: what that one remembered counts.
  void recall(Partition& partition);
  /// Something odd happened there: look before the next record.
  static void doubt(Partition& partition) { partition.log.doubted = true; }
  /// May a record of this partition be handed out now? Otherwise a look is under way: ask again. A look
  /// without an answer holds nobody for longer than `hold_at_most`.
  bool trusts(Partition& partition);
  /// The newest record handed out.
  void passed(Partition& partition, const rd_kafka_message_s& message);
  /// Moves a look on; waits up to `wait` for it where a record waits. A partition whose log is another one,
  /// each once;
  /// null: none.
  Partition* serve(Duration wait);
  /// A record waits for an answer.
  [[nodiscard]] bool holds() const noexcept { return holds_; }
  /// Why the file could not be written, once.
  std::optional<Error> take_complaint();

 private:
  [[nodiscard]] bool is_fresh(const LogMemory& memory, TimePoint now) const;
  void begin_look(TimePoint now);
  Partition* take_answer(const LogProbe::Answer& answer, TimePoint now);
  void end_look(TimePoint now);
  void save();

  const Setup setup_;
  const Clock& clock_;
  Partitions& partitions_;
  const AnchorFile file_;
  bool enabled_ = true;
  bool holds_ = false;
  std::unique_ptr<LogProbe> probe_;
  TimePoint probe_ends_{};
  TimePoint next_look_{};
  std::optional<Error> complaint_;
};

}  // namespace rivulet::stream::kafka
