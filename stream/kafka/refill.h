#pragma once
#include <cstddef>
#include <memory>

#include "stream/kafka/client.h"
#include "stream/kafka/partitions.h"

struct rd_kafka_queue_s;

namespace rivulet::stream::kafka {

/// librdkafka before 2.2 looks once a second whether a queue that was full has room again, and fetches
/// nothing meanwhile: what a device trains per second is then no more than queue and row buffer hold. A
/// question to the brokers makes it look at once, so one is asked whenever the queue has fallen to half of
/// what it was. Newer versions have a setting for it. Cost: a round trip to each leader per half a queue.
/// Owner: the ingest thread.
class Refill {
 public:
  explicit Refill(rd_kafka_s* client);
  /// The setting that newer versions have; {} where it is not known.
  static std::span<const Default> defaults() noexcept;
  /// After records were taken. May block for the round trips, 20 ms each at most.
  void look(const Partitions& partitions, TimePoint now);

 private:
  struct Destroy {
    void operator()(rd_kafka_queue_s* queue) const noexcept;
  };
  void ask_leaders(const Partitions& partitions);

  rd_kafka_s* client_;
  std::unique_ptr<rd_kafka_queue_s, Destroy> queue_;
  std::size_t most_ = 0;  ///< that waited since the brokers were asked
  TimePoint asked_{};
};

}  // namespace rivulet::stream::kafka
