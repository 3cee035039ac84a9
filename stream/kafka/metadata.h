#pragma once
#include <memory>
#include <span>
#include <string>

#include "core/result.h"
#include "core/time.h"

struct rd_kafka_metadata;  // a function has the same name
struct rd_kafka_s;

namespace rivulet::stream::kafka {

struct DestroyMetadata {
  void operator()(const struct rd_kafka_metadata* metadata) const noexcept;
};
/// Topics, with their partitions and leaders, and all brokers, at the addresses that the cluster advertises.
using Metadata = std::unique_ptr<const struct rd_kafka_metadata, DestroyMetadata>;

/// Both block up to `timeout`. Errors: unavailable (no answer).

/// All topics that the user may see. Cost: some 50 bytes for each partition of the cluster.
Result<Metadata> ask_about_all_topics(rd_kafka_s* client, Duration timeout);

/// These topics, of which there is at least one; maybe others, too. One that is not there, or that the user
/// may not see, has no partitions or is missing. Asks by name if that is sure to make none; of the embedded
/// broker, and by a client that makes topics, about all.
Result<Metadata> ask_about_topics(rd_kafka_s* client, std::span<const std::string> topics, Duration timeout);

}  // namespace rivulet::stream::kafka
