#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/time.h"

/// Small blocking Kafka calls for tests. Each opens its own client, so it sees the state of the broker. All
/// work with the real and the embedded broker, except create_topic, which needs the real one.
namespace rivulet::testing {

struct TestRecord {
  std::string value;
  std::string key;
  int partition = 0;
  std::int64_t timestamp_ms = 0;  ///< 0: now
  std::int64_t offset = -1;       ///< set by consume
  std::map<std::string, std::string> headers = {};
  bool tombstone = false;  ///< record without a value
};

/// Errors of all: unavailable (no answer before the deadline), io (the broker's message).
Status wait_for_broker(const std::string& brokers, Duration deadline);
/// Returns when every partition has a leader. Fails if the topic exists.
Status create_topic(const std::string& brokers, const std::string& topic, int partitions,
                    const std::map<std::string, std::string>& configuration = {});
/// Returns when the broker no longer lists the topic.
Status delete_topic(const std::string& brokers, const std::string& topic);
/// Deletes records below `before`, as retention does; returns when they are gone.
Status delete_records(const std::string& brokers, const std::string& topic, int partition,
                      std::int64_t before);
/// Returns when the broker has acknowledged all records.
Status produce(const std::string& brokers, const std::string& topic, const std::vector<TestRecord>& records);
/// Writes the records in an aborted transaction: readers of committed records never see their offsets.
Status produce_and_abort(const std::string& brokers, const std::string& topic,
                         const std::vector<TestRecord>& records);
/// Records in a transaction that stays open until it is committed or the object is destroyed.
class OpenTransaction {
 public:
  static Result<std::unique_ptr<OpenTransaction>> begin(const std::string& brokers, const std::string& topic,
                                                        const std::vector<TestRecord>& records);
  virtual ~OpenTransaction() = default;
  virtual Status commit() = 0;
};
/// Returns `count` records of a partition from `offset`; fails after the deadline.
Result<std::vector<TestRecord>> consume(const std::string& brokers, const std::string& topic, int partition,
                                        std::int64_t offset, std::size_t count, Duration deadline);
/// Returns the first and the next offset of a partition.
Result<std::pair<std::int64_t, std::int64_t>> watermarks(const std::string& brokers, const std::string& topic,
                                                         int partition);
/// Returns the offset committed by `group`; -1 if none.
Result<std::int64_t> committed_offset(const std::string& brokers, const std::string& group,
                                      const std::string& topic, int partition);

}  // namespace rivulet::testing
