#pragma once
#include <string>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "stream/open.h"

/// Checks of Kafka permissions without side effects. Each check sends a request that the broker rejects for a
/// different reason once it has checked the permission. Every call opens its own client and blocks until the
/// broker has answered, at most about twice `deadline` plus 4 s. The embedded broker has no access control:
/// it permits everything. Errors: unavailable (the missing permission), timed_out (no answer: the broker, its
/// address, and librdkafka's message).
namespace rivulet::stream {

/// Checks that the leaders of these partitions answer at their advertised addresses. Blocks up to `deadline`.
/// Errors: timed_out (lists all leaders that did not answer).
Status try_leaders(const Properties&, const std::vector<TopicPartition>& partitions, Duration deadline);

/// Checks permission to read `topic` and to commit offsets as `group`. Requests a commit for partition
/// `beyond`, which the topic does not have.
Status try_reading(const Properties&, const std::string& topic, int beyond, const std::string& group,
                   Duration deadline);

/// Checks permission to write to `topic`. Sends a record with two required acknowledgements, an invalid
/// number.
Status try_writing(const Properties&, const std::string& topic, Duration deadline);

/// Checks permission to create `topic`. Sends the broker a request that it only validates.
Status try_creating(const Properties&, const std::string& topic, Duration deadline);

}  // namespace rivulet::stream
