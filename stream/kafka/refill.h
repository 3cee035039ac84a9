#pragma once
#include <cstddef>
#include <memory>

#include "stream/kafka/client.h"
#include "stream/kafka/partitions.h"

struct rd_kafka_queue_s;

namespace rivulet::stream::kafka {

/// Speeds up refetching in librdkafka before 2.2: it checks only once per second whether a full queue has
/// space again. A device could then train at most one queue and one row buffer per second. Any request to a
/// broker triggers the check, so one is sent whenever the queue has fallen to half. Newer versions have a
/// setting for it. Cost: a round trip to each leader per half queue of records. Owner: the ingest thread.
class Refill {
 public:
  explicit Refill(rd_kafka_s* client);
  /// The setting of newer versions; empty if this version lacks it.
  static std::span<const Default> defaults() noexcept;
  /// Call after records were taken. May block for the round trips, at most 20 ms each.
  void look(const Partitions& partitions, TimePoint now);

 private:
  struct Destroy {
    void operator()(rd_kafka_queue_s* queue) const noexcept;
  };
  void query_leaders(const Partitions& partitions);

  rd_kafka_s* client_;
  std::unique_ptr<rd_kafka_queue_s, Destroy> queue_;
  std::size_t most_ = 0;  ///< maximum queue length since the last request
  TimePoint queried_{};
};

}  // namespace rivulet::stream::kafka
