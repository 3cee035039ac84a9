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

/// Reading records of a topic to look at them: joins no group, moves no offset.
namespace rivulet::runtime::cli {

struct TopicReading {
  stream::Properties properties;
  std::string topic;
  std::string group;            ///< some access lists want a name; empty = the client's own
  std::vector<int> partitions;  ///< that are there
  stream::StartOffset start;    ///< latest: the newest `records`, shared out evenly
  std::uint64_t records = 10;
  Duration longest = std::chrono::hours(24);  ///< from when on what was read is enough
};

/// Hands records over until `use` returns false, or every partition was read to where it ended at first: a
/// live topic has no other end; to an open transaction; or for 5 s without a record. Until `stop`, which is
/// looked at ten times a second. The record's bytes live during the call. Errors: unavailable (also: a
/// partition whose leader has not answered for 10 s, named, when the others have been read), invalid_config.
Status read_topic(const TopicReading& reading, const StopRequest& stop,
                  const std::function<bool(const Record&)>& use);

/// The name that peeks at a job's topics are made under, for access lists; empty for a job without a name.
std::string peek_group(const std::string& job);

/// How many partitions a topic has, asked for 10 s at most. Errors: unavailable.
Result<int> partitions_in(const stream::Properties& properties, const std::string& topic);

}  // namespace rivulet::runtime::cli
