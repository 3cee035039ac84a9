#pragma once
#include <cstddef>
#include <cstdint>

#include "core/record.h"
#include "core/time.h"
#include "stream/rate.h"
#include "stream/source.h"

namespace rivulet::runtime {

/// Of rows that come faster than they are trained (source.retention).
enum class Retention : std::uint8_t {
  persist,          ///< all wait where they are
  truncate_newest,  ///< about a second of them waits, and what comes then is dropped
  truncate_oldest,  ///< about a second of them waits, and older ones are dropped
};

/// Which records are dropped before they are decoded, and how fast the logs grow, by which that is decided.
/// As many rows as the largest batch takes wait in any case. Owner: the ingest thread.
class Truncation {
 public:
  Truncation(Retention retention, std::size_t largest_batch, std::size_t capacity);

  /// Nothing is ever dropped, and growth is not followed.
  [[nodiscard]] bool is_off() const noexcept { return retention_ == Retention::persist; }
  /// Where rows may be truncated they are read in bursts, and most are not decoded: there it is what the log
  /// grows by that counts, a record as a row. Of that a second is kept.
  void follow(const stream::RecordSource& source, TimePoint now);
  [[nodiscard]] double rows_per_second(TimePoint now) { return growth_.per_second(now); }
  /// How many of `most` records to ask for, by the rows that wait and those that can be taken.
  [[nodiscard]] std::size_t room(std::size_t most, std::size_t waiting, std::size_t free) const;
  /// `waiting`: rows in front of the record.
  [[nodiscard]] bool drops(const Record& record, std::size_t waiting,
                           const stream::RecordSource& source) const;

 private:
  const Retention retention_;
  const std::size_t least_;  ///< rows that wait in any case
  const std::size_t capacity_;
  stream::GrowthEstimate growth_;  ///< of the partitions, whatever is read of them
  std::size_t growing_ = 0;        ///< those whose ends are known
  std::size_t keep_;               ///< rows that wait before any are dropped
};

}  // namespace rivulet::runtime
