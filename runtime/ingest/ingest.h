#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "buffer/ledger.h"
#include "buffer/row_buffer.h"
#include "core/clock.h"
#include "core/metrics.h"
#include "core/wake.h"
#include "runtime/checkpoint/committable_offsets.h"
#include "runtime/ingest/assignment_slot.h"
#include "runtime/ingest/feature_watch.h"
#include "runtime/ingest/partition_watch.h"
#include "runtime/ingest/stream_gauge.h"
#include "runtime/ingest/truncation.h"
#include "runtime/process/agent.h"
#include "runtime/process/log.h"
#include "runtime/status/node_status.h"
#include "stream/decoder.h"
#include "stream/rate.h"
#include "stream/source.h"

namespace rivulet::runtime {

class HealthWatch;

struct IngestConfig {
  std::size_t records_per_step = 512;
  Duration poll_wait = std::chrono::milliseconds(5);  ///< how long the source may wait inside poll()
  Duration commit_every = std::chrono::seconds(1);
  bool commit = true;            ///< false: nothing is ever published (dry run)
  bool stop_on_bad_row = false;  ///< decode.on_error = "stop"
  Retention retention = Retention::persist;
  std::size_t largest_batch = 128;  ///< in rows
  HealthSetup health = {};
  std::string format;                    ///< for metrics
  std::vector<std::string> topics = {};  ///< of the job, for people
};

/// Source -> decoder -> slab: owns every call on the source, the decoder and the producer end of the buffer.
/// Reads the partitions that it is assigned, from where the assignment says.
/// Asks for no more records than there are free rows; a record whose rows do not all fit waits half
/// decoded, with its next row in the buffer's spare slot. A bad row is dropped and counted by reason; the
/// loop continues. So is a row of another kind than is meant, in silence. Where rows may be truncated, whole
/// records are, before they are decoded.
class Ingest final : public Agent {
 public:
  struct Parts {
    const Clock& clock;
    stream::RecordSource& source;
    stream::Decoder& decoder;
    buffer::RowBuffer& rows;
    buffer::Ledger& ledger;
    CommittableOffsets& commits;
    AssignmentSlot& assignments;
    StreamGauge& gauge;
    NodeStatus& status;
    MetricsSink& metrics;
    Logger& log;
    Wake& worker;  ///< notified when rows arrived
  };
  Ingest(const IngestConfig& config, const Parts& parts);
  ~Ingest() override;

  [[nodiscard]] std::string_view name() const noexcept override { return "ingest"; }
  Turn step() override;
  /// Set once the source cannot continue (or a bad row must stop the device); the loop has ended then.
  [[nodiscard]] const std::optional<Error>& failure() const noexcept { return failure_; }

 private:
  bool rests(TimePoint now);
  bool follow_assignment();  ///< false: the source could not be told of it yet
  bool is_passed(const RowPosition& row) const;
  void pass_holes(const PartitionId& partition, std::int64_t next);
  [[nodiscard]] bool is_too_much(const Record& record) const;
  void truncate(const Record& record);
  void open_record(const Record& record);
  void write_drop(const RowCursor& to);
  int read_records();
  int decode_waiting();  ///< how many records were finished; measured if something came of them
  bool decode_one(const Record& record);  ///< false: the slab is full, the record waits
  void publish(const Record& record);
  void drop(const Record& record, const stream::Decoded& step);
  void finish_record(const Record& record);
  void commit_if_due(TimePoint now);
  void publish_status(TimePoint now);
  void count_dropped(DropReason reason, std::uint64_t rows);
  void measure_backpressure(TimePoint now);
  void count_published(TimePoint now);
  void handle_source_error(const Error& error);

  // constant
  const IngestConfig config_;
  Parts parts_;
  PartitionWatch watch_;
  FeatureWatch features_;
  const std::unique_ptr<HealthWatch> health_;
  struct Metrics {
    Metrics(MetricsSink& sink, const std::string& format);
    Counter& decoded_rows;
    Counter& decoded_dropped;
    Histogram& decode_seconds;
    Counter& backpressure;
  };
  const Metrics metrics_;
  // ingest thread
  Truncation truncation_;
  Assignment assignment_;     ///< rows below its cursors were used by the group already
  bool assigned_ = true;      ///< the source was told of it
  buffer::Cursors expected_;  ///< where each partition's next record begins, if no offset is a hole
  /// What the last poll brought, while it is decoded.
  struct Decoding {
    std::span<const Record> records;
    std::size_t at = 0;                   ///< those before are done
    bool in_decoder = false;              ///< records[at] is in the decoder
    bool row_waits = false;               ///< its next row is in the claimed slot, for want of room
    std::uint32_t row = 0;                ///< rows of it passed so far
    bool newest_amendable = false;        ///< its last published row is not flushed yet
    bool any_row = false;                 ///< something of it is accounted for as a row
    bool any_good_row = false;            ///< and one of these is not dropped
    std::optional<SkippedRange> drop;     ///< its end is known only with what follows
    std::uint32_t unaccounted_bytes = 0;  ///< of records that ended with a dropped row
    [[nodiscard]] bool waits() const noexcept { return at < records.size(); }
  };
  Decoding open_;
  bool has_truncated_ = false;  ///< ever
  stream::RateEstimate rate_;
  std::uint64_t published_ = 0;             ///< rows of this step
  std::optional<TimePoint> full_at_;        ///< the last look found no room
  std::optional<TimePoint> resting_until_;  ///< there was no room: filled again then, or when much is free
  TimePoint next_commit_{};
  std::vector<NextOffset> commit_news_;
  std::optional<Error> failure_;
};

}  // namespace rivulet::runtime
