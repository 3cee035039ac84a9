#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/time.h"

/// Small blocking Kafka calls for tests: each opens its own client, so what it sees is what the broker has.
/// All work on the real broker and on the embedded one, but create_topic, which needs the real one.
namespace rivulet::testing {

struct TestRecord {
  std::string value;
  std::string key;
  int partition = 0;
  std::int64_t timestamp_ms = 0;  ///< 0: now
  std::int64_t offset = -1;       ///< filled by consume
  std::map<std::string, std::string> headers = {};
  bool tombstone = false;  ///< no value at all
};

/// Errors of all: unavailable (no answer before the deadline), io (the broker's words).
Status wait_for_broker(const std::string& brokers, Duration deadline);
/// Returns when every partition has a leader. An existing topic is an error.
Status create_topic(const std::string& brokers, const std::string& topic, int partitions,
                    const std::map<std::string, std::string>& configuration = {});
/// Returns when the topic is gone from the broker's list.
Status delete_topic(const std::string& brokers, const std::string& topic);
/// What retention does: records below `before` are gone when it returns.
Status delete_records(const std::string& brokers, const std::string& topic, int partition,
                      std::int64_t before);
/// Returns when the broker has acknowledged all.
Status produce(const std::string& brokers, const std::string& topic, const std::vector<TestRecord>& records);
/// Writes the records in a transaction that is then aborted: offsets that a reader of committed records never
/// sees.
Status produce_and_abort(const std::string& brokers, const std::string& topic,
                         const std::vector<TestRecord>& records);
/// Records in a transaction that stays open until it is committed, or this object ends.
class OpenTransaction {
 public:
  static Result<std::unique_ptr<OpenTransaction>> begin(const std::string& brokers, const std::string& topic,
                                                        const std::vector<TestRecord>& records);
  virtual ~OpenTransaction() = default;
  virtual Status commit() = 0;
};
/// `count` records of one partition from `offset` on; an error when they do not come before the deadline.
Result<std::vector<TestRecord>> consume(const std::string& brokers, const std::string& topic, int partition,
                                        std::int64_t offset, std::size_t count, Duration deadline);
/// First and next offset of a partition.
Result<std::pair<std::int64_t, std::int64_t>> watermarks(const std::string& brokers, const std::string& topic,
                                                         int partition);
/// What `group` committed there; -1 when nothing.
Result<std::int64_t> committed_offset(const std::string& brokers, const std::string& group,
                                      const std::string& topic, int partition);

}  // namespace rivulet::testing
