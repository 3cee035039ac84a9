#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "stream/dataset.h"
#include "stream/open.h"

namespace rivulet::stream {

struct FeederConfig {
  Properties properties;
  std::string topic;
  std::vector<double> rates;         ///< records/s of partition i; a single rate applies to all partitions
  int partitions = 0;                ///< 0 = all partitions of the topic
  std::vector<double> second_rates;  ///< from `change_at` on; empty = no change
  Duration change_at = Duration::max();
  Duration duration = Duration::max();
  std::uint64_t seed = 1;  ///< order of the records
  Order order = Order::shuffled;
  int labels_per_device = 0;  ///< > 0: classes per partition (needs labels)
  bool repeat = false;        ///< restart (reshuffled) at the end of the data
  bool pace_by_commits =
      false;  ///< on the embedded broker: never exceed the committed offset by more than `window_bytes`
  std::string pace_group;  ///< consumer group that commits these offsets: rivulet.<job>
  std::size_t window_bytes = 3'000'000;
};

struct FeedProgress {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  std::uint64_t held_back = 0;  ///< number of times that a partition waited for commits
  double seconds = 0;
  double fraction = 0;  ///< played part of the duration or data, 0..1; 0 if unbounded
  std::vector<std::uint64_t> per_partition;
};

/// Plays a data set into a topic at given rates, with record timestamps, until the data ends, `duration` has
/// passed or `stop` returns true. The same seed gives the same order per partition. Blocks; calls `progress`
/// about four times a second. Errors: unavailable (broker, topic), io (delivery failed; names partition).
Result<FeedProgress> feed(const Dataset&, const FeederConfig&, const Clock&,
                          const std::function<void(const FeedProgress&)>& progress,
                          const std::function<bool()>& stop);

}  // namespace rivulet::stream
