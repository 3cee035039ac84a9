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
  Duration poll_wait = std::chrono::milliseconds(5);  ///< maximum wait of the source in poll()
  Duration commit_every = std::chrono::seconds(1);
  bool commit = true;            ///< false in a dry run: no offsets are committed
  bool stop_on_bad_row = false;  ///< decode.on_error = "stop"
  Retention retention = Retention::persist;
  std::size_t largest_batch = 128;  ///< number of rows in the largest batch
  HealthSetup health = {};
  std::string format;                    ///< name of the format, for metrics
  std::vector<std::string> topics = {};  ///< topics of the job, for messages
};

/// Reads records, decodes them and fills the row buffer. The only caller of the source, the decoder and the
/// producer end of the buffer. Reads the assigned partitions from the assigned cursors. Requests no more
/// records than the buffer has free rows. A record whose rows do not all fit waits partly decoded, with its
/// next row in the buffer's spare slot. Drops bad rows and counts them by reason; expected drops (filtered
/// and context rows) cause no warning. If truncation is enabled, drops whole records before decoding.
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
    Wake& worker;  ///< notified when rows arrive
  };
  Ingest(const IngestConfig& config, const Parts& parts);
  ~Ingest() override;

  [[nodiscard]] std::string_view name() const noexcept override { return "ingest"; }
  Turn step() override;
  /// The error that ended the loop: the source cannot continue, or a bad row must stop the device. nullopt
  /// otherwise.
  [[nodiscard]] const std::optional<Error>& failure() const noexcept { return failure_; }

 private:
  bool rests(TimePoint now);
  bool follow_assignment();  ///< false if the source has not accepted it yet
  bool is_passed(const RowPosition& row) const;
  void pass_holes(const PartitionId& partition, std::int64_t next);
  [[nodiscard]] bool is_too_much(const Record& record) const;
  void truncate(const Record& record);
  void open_record(const Record& record);
  void write_drop(const RowCursor& to);
  int read_records();
  int decode_waiting();                   ///< number of finished records; timed if it made progress
  bool decode_one(const Record& record);  ///< false if the buffer is full; the record then waits
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
  Assignment assignment_;     ///< the group has already used rows below its cursors
  bool assigned_ = true;      ///< the source has accepted the assignment
  buffer::Cursors expected_;  ///< start of each partition's next record if no offset is a hole
  /// Decoding state of the records from the last poll.
  struct Decoding {
    std::span<const Record> records;
    std::size_t at = 0;                   ///< index of the current record; earlier ones are done
    bool in_decoder = false;              ///< records[at] is in the decoder
    bool row_waits = false;               ///< the next row is in the claimed slot; the buffer is full
    std::uint32_t row = 0;                ///< index of the next row in this record
    bool newest_amendable = false;        ///< the last published row is not flushed yet
    bool any_row = false;                 ///< a row of the record is accounted for
    bool any_good_row = false;            ///< a row of the record was published
    std::optional<SkippedRange> drop;     ///< its end is known only when the next row or record begins
    std::uint32_t unaccounted_bytes = 0;  ///< bytes of records that ended with a dropped row
    [[nodiscard]] bool waits() const noexcept { return at < records.size(); }
  };
  Decoding open_;
  bool has_truncated_ = false;  ///< true once a record was truncated in this run
  stream::RateEstimate rate_;
  std::uint64_t published_ = 0;             ///< rows published in this step
  std::optional<TimePoint> full_at_;        ///< set if the buffer was full at the last check
  std::optional<TimePoint> resting_until_;  ///< the buffer was full: pause until then, or until much is free
  TimePoint next_commit_{};
  std::vector<NextOffset> commit_news_;
  std::optional<Error> failure_;
};

}  // namespace rivulet::runtime
