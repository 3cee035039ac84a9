#include "tests/support/replay/replay_streams.h"

#include <algorithm>

#include "runtime/node/node_config.h"
#include "runtime/wiring/simulation_source.h"
#include "stream/open.h"

namespace rivulet::runtime {
namespace {

constexpr double as_fast_as_asked =
    20'000;  // rows per virtual second: the clock only advances to the next record

/// Without an offset: from the beginning, which precedes any offset.
Result<ReplayStream> reads_from(ReplayStream to, std::unique_ptr<stream::RecordSource> source,
                                const PartitionId& partition, std::optional<std::int64_t> offset) {
  Assignment one;
  one.cursors[partition] = offset ? std::optional(RowCursor{*offset, 0}) : std::nullopt;
  if (auto assigned = source->assign(one); !assigned) return assigned.error();
  to.source = std::move(source);
  return to;
}

}  // namespace

Result<std::unique_ptr<ReplayStreams>> ReplayStreams::create(const Config& config, const std::string& data) {
  std::unique_ptr<ReplayStreams> streams(new ReplayStreams(config));
  if (data.empty()) return streams;
  auto opened = stream::open_dataset(data, stream::Split::train);
  if (!opened) return opened.error();
  streams->data_ = std::move(opened).value();
  return streams;
}

Result<ReplayStream> ReplayStreams::open(const PartitionId& partition, std::int64_t offset) {
  if (data_ == nullptr && config_.source.type == "kafka") return open_kafka(partition, offset);
  ReplayStream out;
  if (data_ == nullptr && config_.source.type == "file") {
    auto file = stream::open_file_source({.path = config_.source.path,
                                          .format = config_.decode.format,
                                          .rows_per_second = 0,
                                          .repeat = config_.source.repeat,
                                          .seed = config_.job.seed},
                                         clock_);
    if (!file) return file.error();
    return reads_from(std::move(out), std::move(file).value(), partition, std::nullopt);
  }
  out.clock = std::make_unique<VirtualClock>();
  if (data_ != nullptr) {
    auto trace =
        make_trace_source(*data_, {}, partition, {{0.0, as_fast_as_asked}}, config_.job.seed, *out.clock);
    return reads_from(std::move(out), std::move(trace), partition, std::nullopt);
  }
  auto synthetic = synthetic_config(config_);
  synthetic.rows_per_second = [](TimePoint) { return as_fast_as_asked; };
  auto made = stream::open_synthetic_source(synthetic, *out.clock);
  if (!made) return made.error();
  return reads_from(std::move(out), std::move(made).value(), partition, std::nullopt);
}

/// Reads without commits; no device uses this group id.
Result<ReplayStream> ReplayStreams::open_kafka(const PartitionId& partition, std::int64_t offset) {
  stream::KafkaSourceConfig kafka;
  kafka.properties = config_.source.kafka_properties;
  kafka.group_id = "rivulet." + config_.job.name + ".replay";
  kafka.client_id = "rivulet-replay";
  kafka.topics = config_.source.topics;
  std::ranges::sort(kafka.topics);
  kafka.count_gaps = true;
  auto source = stream::open_kafka_source(kafka, clock_, metrics_);
  if (!source) return source.error();
  return reads_from({}, std::move(source).value(), partition, offset);
}

}  // namespace rivulet::runtime
