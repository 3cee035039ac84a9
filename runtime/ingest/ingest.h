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
#include "runtime/ingest/feature_watch.h"
#include "runtime/ingest/partition_watch.h"
#include "runtime/ingest/seek_requests.h"
#include "runtime/ingest/stream_gauge.h"
#include "runtime/process/agent.h"
#include "runtime/process/log.h"
#include "runtime/status/node_status.h"
#include "stream/decoder.h"
#include "stream/rate.h"
#include "stream/source.h"

namespace rivulet::runtime {

class HealthWatch;

/// Of rows that come faster than they are trained.
enum class Retention : std::uint8_t {
  persist,          ///< all wait where they are
  truncate_newest,  ///< about a second of them waits, and what comes then is dropped
  truncate_oldest,  ///< about a second of them waits, and older ones are dropped
};

struct IngestConfig {
  std::size_t records_per_step = 512;
  Duration poll_wait = std::chrono::milliseconds(5);  ///< how long the source may wait inside poll()
  Duration commit_every = std::chrono::seconds(1);
  bool commit = true;            ///< false: nothing is ever published (dry run)
  bool stop_on_bad_row = false;  ///< decode.on_error = "stop"
  Retention retention = Retention::persist;
  std::size_t keep_least = 128;  ///< rows that wait in any case before any are dropped
  HealthSetup health = {};
  std::string format;                    ///< for metrics
  std::vector<std::string> topics = {};  ///< of the job, for people
};

/// Source -> decoder -> slab: owns every call on the source, the decoder and the producer end of the buffer.
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
    SeekRequests& rewinds;
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
  bool rewind();  ///< false: the source could not be sent there yet
  bool is_passed(const RowPosition& row) const;
  void pass_holes(const PartitionId& partition, std::int64_t next);
  [[nodiscard]] std::size_t room() const;
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
  void follow_growth(TimePoint now);
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
  std::span<const Record> records_;  ///< not fully decoded yet: records_[at_ ...]
  std::size_t at_ = 0;
  struct OpenRecord {
    bool in_decoder = false;        ///< records_[at_] is in the decoder
    bool row_waits = false;         ///< its next row is in the claimed slot, for want of room
    std::uint32_t row = 0;          ///< rows of it passed so far
    bool newest_amendable = false;  ///< its last published row is not flushed yet
    bool any_row = false;           ///< something of it is accounted for as a row
    bool any_good_row = false;      ///< and one of these is not dropped
  };
  OpenRecord open_;
  std::optional<SkippedRange> open_drop_;  ///< its end is known only with what follows
  buffer::Cursors expected_;  ///< where each partition's next record begins, if no offset is a hole
  std::uint32_t generation_ = 0;
  buffer::Cursors from_;  ///< rows below these were used by the group already
  bool sought_ = true;    ///< the source stands where the last rewind asked it to
  stream::RateEstimate rate_;
  std::uint64_t published_ = 0;             ///< rows of this step
  stream::GrowthEstimate growth_;           ///< of the partitions, whatever is read of them
  std::size_t growing_ = 0;                 ///< so many of them, whose ends are known
  bool has_truncated_ = false;              ///< ever
  std::size_t keep_ = 0;                    ///< rows that wait before any are dropped
  std::uint32_t unaccounted_bytes_ = 0;     ///< of records that ended with a dropped row
  std::optional<TimePoint> full_at_;        ///< the last look found no room
  std::optional<TimePoint> resting_until_;  ///< there was no room: filled again then, or when much is free
  TimePoint next_commit_{};
  std::vector<NextOffset> commit_news_;
  std::optional<Error> failure_;
};

}  // namespace rivulet::runtime
