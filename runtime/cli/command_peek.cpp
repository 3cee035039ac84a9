#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <ostream>

#include "core/clock.h"
#include "core/metrics.h"
#include "runtime/catalog.h"
#include "runtime/cli/config_flags.h"
#include "runtime/cli/feature_ranges.h"
#include "runtime/cli/peek_print.h"
#include "runtime/cli/text.h"
#include "runtime/node.h"
#include "runtime/node_config.h"
#include "runtime/signals.h"
#include "stream/open.h"

namespace rivulet::runtime::cli {
namespace {

constexpr auto broker_deadline = std::chrono::seconds(10);
constexpr const char* peek_footer = R"(Examples:
  rivulet peek mnist --config device.toml --rows 3
  rivulet peek sensors --config examples/sensors-json/device.toml --from latest
  rivulet peek mnist --brokers localhost:9092 --from 1200 --rows 1 --partitions 2
  rivulet peek sensors --brokers localhost:9092 --set decode.format=json --set 'decode.json={features=["temp"], target="label"}'
  rivulet peek mnist --config device.toml --json | jq .targets

Shows what the configured decoder makes of the records, why it drops some, and how far the numbers lie from
0 and 1 (--rows 1000 | tail). Joins no group, commits nothing.
Ends after --rows rows, or at the end of the topic. --from latest shows the newest rows there are.)";

struct PeekFlags {
  std::string topic;
  std::string from = "earliest";
  std::string partitions;
  std::uint64_t rows = 10;
  bool json = false;
};

Result<stream::StartOffset> start_of(const std::string& text) {
  using Kind = stream::StartOffset::Kind;
  if (text == "earliest") return stream::StartOffset{Kind::earliest, 0};
  if (text == "latest") return stream::StartOffset{Kind::latest, 0};
  std::int64_t offset = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), offset);
  if (error == std::errc() && end == text.data() + text.size() && offset >= 0) {
    return stream::StartOffset{Kind::absolute, offset};
  }
  return Error{ErrorCode::usage, fmt::format("--from '{}' is none of earliest, latest or an offset", text)};
}

Result<std::vector<int>> partitions_of(const std::string& text, int count, const std::string& topic) {
  std::vector<int> partitions;
  for (int p = 0; text.empty() && p < count; ++p) partitions.push_back(p);
  for (const auto& item : text.empty() ? std::vector<std::string>{} : split(text, ',')) {
    int p = -1;
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), p);
    if (error != std::errc() || end != item.data() + item.size() || p < 0) {
      return Error{ErrorCode::usage, fmt::format("--partitions: '{}' is not a number", item)};
    }
    if (p >= count) {
      return Error{ErrorCode::unavailable,
                   fmt::format("topic {} has partitions 0 to {}, not {}", topic, count - 1, p)};
    }
    if (std::find(partitions.begin(), partitions.end(), p) != partitions.end())
      return Error{ErrorCode::usage, fmt::format("--partitions: {} is named twice", p)};
    partitions.push_back(p);
  }
  return partitions;
}

/// Shows rows until there were enough, or the end of every partition was seen.
class Peeker {
 public:
  Peeker(const PeekFlags& flags, stream::RecordSource& source, stream::Decoder& decoder, std::ostream& out)
      : flags_(flags),
        source_(source),
        decoder_(decoder),
        out_(out),
        features_(decoder.shape().columns()),
        targets_(decoder.shape().targets),
        ranges_(decoder.shape().columns()) {}

  Status show(const StopRequest& stop) {
    const RealClock clock;
    const auto deadline = clock.now() + broker_deadline;
    bool rewound = flags_.from != "latest";
    while (!enough() && stop.load() == 0) {
      const auto records = source_.poll(64, std::chrono::milliseconds(100));
      if (!records) return records.error();
      if (!seen_ends() && clock.now() > deadline) {
        return Error{ErrorCode::unavailable,
                     fmt::format("nothing heard from topic {} within 10 s", flags_.topic)};
      }
      if (!rewound) {
        if (seen_ends()) {
          if (auto status = rewind(); !status) return status;
          rewound = true;
        }
        continue;
      }
      for (const auto& record : records.value()) show_record(record);
      if (records.value().empty() && at_end()) break;
    }
    return ok();
  }
  [[nodiscard]] std::uint64_t shown() const noexcept { return shown_; }
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }
  [[nodiscard]] const FeatureRanges& ranges() const noexcept { return ranges_; }

 private:
  /// Also when nobody reads on, as behind `| head`.
  [[nodiscard]] bool enough() const { return shown_ + dropped_ >= flags_.rows || !out_.good(); }
  /// From the end back by as many records as rows are wanted, so that "latest" shows what there is.
  Status rewind() {
    const auto states = source_.partitions();
    const auto each = static_cast<std::int64_t>((flags_.rows + states.size() - 1) / states.size());
    std::vector<NextOffset> positions;
    for (const auto& p : states) {
      positions.push_back({p.id, std::max({p.high_watermark - each, p.low_watermark, std::int64_t{0}})});
    }
    return source_.seek(positions);
  }
  void show_record(const Record& record) {
    RowPosition position{record.partition, {record.offset, 0}};
    decoder_.begin(record);
    while (!enough()) {
      const auto step = decoder_.next({features_, targets_});
      if (step.kind == stream::Decoded::Kind::end) return;
      if (step.kind == stream::Decoded::Kind::row) show_row(record, position);
      if (step.kind == stream::Decoded::Kind::dropped) show_drop(position, step.reason);
      position.at.row += step.rows;
    }
  }
  void show_row(const Record& record, const RowPosition& position) {
    const PeekedRow row{flags_.topic, position, record.timestamp_ms, features_, targets_};
    out_ << (flags_.json ? row_to_json(row, decoder_.shape()) + "\n"
                         : describe_row(row, decoder_.shape(), true));
    ranges_.add(features_);
    ++shown_;
  }
  void show_drop(const RowPosition& position, DropReason reason) {
    out_ << (flags_.json ? drop_to_json(flags_.topic, position, reason, decoder_.detail()) + "\n"
                         : describe_drop(flags_.topic, position, reason, decoder_.detail()));
    ++dropped_;
  }
  [[nodiscard]] bool seen_ends() const {
    const auto states = source_.partitions();
    return std::all_of(states.begin(), states.end(), [](const auto& p) { return p.high_watermark >= 0; });
  }
  [[nodiscard]] bool at_end() const {
    const auto states = source_.partitions();
    return std::all_of(states.begin(), states.end(), [](const auto& p) {
      return p.high_watermark >= 0 && p.next_offset >= p.high_watermark;
    });
  }

  const PeekFlags& flags_;
  stream::RecordSource& source_;
  stream::Decoder& decoder_;
  std::ostream& out_;
  std::vector<float> features_;
  std::vector<float> targets_;
  FeatureRanges ranges_;
  std::uint64_t shown_ = 0;
  std::uint64_t dropped_ = 0;
};

class PeekCommand final : public Command {
 public:
  explicit PeekCommand(CLI::App& root)
      : app_(root.add_subcommand("peek", "what the decoder makes of a topic's records, moving no offset")) {
    app_->add_option("topic", flags_.topic, "which topic")->required()->type_name("TOPIC");
    config_.add_to(*app_, {"--brokers"});
    app_->add_option("-n,--rows", flags_.rows, "show so many rows")
        ->type_name("N")
        ->capture_default_str()
        ->check(CLI::Range(1, 1'000'000));
    app_->add_option("--from", flags_.from, "where to begin")
        ->type_name("earliest|latest|OFFSET")
        ->capture_default_str();
    app_->add_option("--partitions", flags_.partitions, "only these")->type_name("P[,P...]");
    app_->add_flag("--json", flags_.json, "one object per row");
    app_->footer(peek_footer);
  }
  [[nodiscard]] bool chosen() const override { return app_->parsed(); }

  ExitCode execute(Terminal& terminal) override {
    const auto start = start_of(flags_.from);
    if (!start) return complain(terminal, start.error());
    // A job needs a name and a model that this build has; to look at a topic they do not matter.
    if (config_.file().empty()) config_.set_key("job.name", "\"peek\"");
    if (config_.file().empty()) config_.set_key("model.name", "\"linear\"");
    config_.set_key("source.topics", "[" + toml_string(flags_.topic) + "]");
    config_.set_key("source.partitions", "[0]");
    const auto loaded = load_or_complain(config_, terminal);
    if (!loaded) return ExitCode::configuration;
    StopRequest stop{0};
    const SignalHandlers handlers(stop);
    const auto peeked = peek(terminal, loaded->config, start.value(), stop);
    return peeked ? ExitCode::ok : complain(terminal, peeked.error());
  }

 private:
  Status peek(Terminal& terminal, const Config& config, const stream::StartOffset& start,
              const StopRequest& stop) {
    const auto decoder = build_decoder(config, builtin_catalog());
    if (!decoder) return decoder.error();
    auto source_config = source_of(config, start);
    if (!source_config) return source_config.error();
    const RealClock clock;
    NullMetrics metrics;
    const auto source = stream::open_kafka_source(source_config.value(), clock, metrics);
    if (!source) return source.error();
    Peeker peeker(flags_, *source.value(), *decoder.value(), terminal.out);
    if (auto status = peeker.show(stop); !status) return status;
    if (!flags_.json) {
      terminal.out << peeker.ranges().describe(config.decode);
      terminal.out << fmt::format("{} rows shown, {} dropped; no offset was moved\n", peeker.shown(),
                                  peeker.dropped());
    }
    return ok();
  }

  Result<stream::KafkaSourceConfig> source_of(const Config& config, const stream::StartOffset& start) const {
    const auto count = stream::partition_count(config.source.kafka_properties, flags_.topic, broker_deadline);
    if (!count) return count.error();
    const auto partitions = partitions_of(flags_.partitions, count.value(), flags_.topic);
    if (!partitions) return partitions.error();
    stream::KafkaSourceConfig source;
    source.properties = config.source.kafka_properties;
    source.client_id = "rivulet-peek";
    // Nothing is committed, but the client asks for the group's coordinator, and access lists may want a
    // name.
    if (!config.job.name.empty()) source.group_id = "rivulet." + config.job.name + ".peek";
    source.start = start;
    for (const int p : partitions.value()) source.partitions.push_back({flags_.topic, {0, p}});
    return source;
  }

  CLI::App* app_;
  ConfigFlags config_;
  PeekFlags flags_;
};

}  // namespace

std::unique_ptr<Command> make_peek_command(CLI::App& root) {
  return std::make_unique<PeekCommand>(root);
}

}  // namespace rivulet::runtime::cli
