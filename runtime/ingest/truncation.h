#pragma once
#include <cstddef>
#include <cstdint>

#include "core/record.h"
#include "core/time.h"
#include "stream/rate.h"
#include "stream/source.h"

namespace rivulet::runtime {

/// What to do with rows that arrive faster than they are trained (source.retention).
enum class Retention : std::uint8_t {
  persist,          ///< keep all in Kafka
  truncate_newest,  ///< keep about one second; drop newly arrived rows
  truncate_oldest,  ///< keep about one second; drop the oldest rows
};

/// Decides which records are dropped before decoding, based on the measured growth of the logs. Always keeps
/// the rows of the largest batch. Owner: the ingest thread.
class Truncation {
 public:
  Truncation(Retention retention, std::size_t largest_batch, std::size_t capacity);

  /// True if nothing is ever dropped; growth is then not measured.
  [[nodiscard]] bool is_off() const noexcept { return retention_ == Retention::persist; }
  /// Measures the growth of the logs and sets the limit to the growth in one second, assuming one row per
  /// record. The growth cannot be measured from the rows read: truncated logs are read in bursts, and most
  /// records are not decoded.
  void follow(const stream::RecordSource& source, TimePoint now);
  [[nodiscard]] double rows_per_second(TimePoint now) { return growth_.per_second(now); }
  /// Returns how many records to request, at most `most`, given the numbers of waiting and free rows.
  [[nodiscard]] std::size_t room(std::size_t most, std::size_t waiting, std::size_t free) const;
  /// True if the record is to be dropped. `waiting`: number of rows in the buffer before the record.
  [[nodiscard]] bool drops(const Record& record, std::size_t waiting,
                           const stream::RecordSource& source) const;

 private:
  const Retention retention_;
  const std::size_t least_;  ///< rows that are always kept
  const std::size_t capacity_;
  stream::GrowthEstimate growth_;  ///< growth of all assigned partitions, read or dropped
  std::size_t growing_ = 0;        ///< number of partitions with a known end
  std::size_t keep_;               ///< waiting rows above which records are dropped
};

}  // namespace rivulet::runtime
