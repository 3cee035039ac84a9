#pragma once
#include <string>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "stream/open.h"

/// What a device does on a Kafka with access lists, tried without doing it: brokers look at rights before
/// they look at anything else, and each question here is one that they then refuse. Every call makes a client
/// of its own and blocks until the broker has answered, at most about twice `deadline` and 4 s more. The
/// embedded broker has no lists: there everything is allowed. Errors: unavailable (the right that is
/// missing), timed_out (nobody answered: which broker, at which address, in the client's words).
namespace rivulet::stream {

/// Do the leaders of these partitions answer, each at the address that it advertises? Blocks up to
/// `deadline`. Errors: timed_out (each that does not).
Status try_leaders(const Properties&, const std::vector<TopicPartition>& partitions, Duration deadline);

/// May the user read `topic` and commit offsets as `group`? Asks to commit one of partition `beyond`, which
/// the topic does not have.
Status try_reading(const Properties&, const std::string& topic, int beyond, const std::string& group,
                   Duration deadline);

/// May the user write into `topic`? Sends a record and asks for two acknowledgements, a number that there is
/// not.
Status try_writing(const Properties&, const std::string& topic, Duration deadline);

/// May the user create `topic`? Asks the broker to check that, and not to do it.
Status try_creating(const Properties&, const std::string& topic, Duration deadline);

}  // namespace rivulet::stream
