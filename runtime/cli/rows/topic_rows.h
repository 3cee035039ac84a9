#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/record.h"
#include "core/result.h"
#include "core/time.h"
#include "runtime/process/signals.h"
#include "stream/open.h"

/// How to read a topic's records for inspection. Reading joins no group and commits no offset.
namespace rivulet::runtime::cli {

struct TopicReading {
  stream::Properties properties;
  std::string topic;
  std::string group;            ///< consumer group for access control lists; empty = the client's default
  std::vector<int> partitions;  ///< existing partitions
  stream::StartOffset start;    ///< latest: the newest `records`, split evenly over partitions
  std::uint64_t records = 10;
  Duration longest = std::chrono::hours(24);  ///< maximum time; then the records read so far suffice
};

/// Passes records to `use` until it returns false, until every partition has reached the end it had at the
/// start, or until no record arrives for 5 s (for example because of an open transaction). Checks `stop` ten
/// times a second. A record's bytes are valid only during the call. Errors: unavailable (also if the leader
/// of a partition does not answer for 10 s: reads the other partitions first, then names it), invalid_config.
Status read_topic(const TopicReading& reading, const StopRequest& stop,
                  const std::function<bool(const Record&)>& use);

/// Consumer group name for reads of a job's topics, for access control lists; empty without a job name.
std::string peek_group(const std::string& job);

/// Returns a topic's number of partitions. Waits up to 10 s. Errors: unavailable.
Result<int> partitions_in(const stream::Properties& properties, const std::string& topic);

}  // namespace rivulet::runtime::cli
