#pragma once
#include <memory>
#include <span>
#include <string>

#include "core/result.h"
#include "core/time.h"

struct rd_kafka_metadata;  // disambiguates from the function of the same name
struct rd_kafka_s;

namespace rivulet::stream::kafka {

struct DestroyMetadata {
  void operator()(const struct rd_kafka_metadata* metadata) const noexcept;
};
/// Topics with their partitions and leaders, and all brokers with their advertised addresses.
using Metadata = std::unique_ptr<const struct rd_kafka_metadata, DestroyMetadata>;

/// Both functions block up to `timeout`. Errors: unavailable (no answer).

/// Returns all topics visible to the user. Cost: about 50 bytes per partition of the cluster.
Result<Metadata> query_all_topics(rd_kafka_s* client, Duration timeout);

/// Returns the given topics, possibly with others; `topics` must not be empty. A topic that does not exist,
/// or is not visible to the user, has no partitions or is missing. Requests them by name if this cannot
/// create topics. Requests all topics from the embedded broker, and for clients that create topics.
Result<Metadata> query_topics(rd_kafka_s* client, std::span<const std::string> topics, Duration timeout);

}  // namespace rivulet::stream::kafka
