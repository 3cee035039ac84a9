#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <ostream>

#include "runtime/cli/config_flags.h"
#include "runtime/cli/rows/peek_print.h"
#include "runtime/cli/rows/row_survey.h"
#include "runtime/cli/rows/topic_rows.h"
#include "runtime/cli/text.h"
#include "runtime/node/catalog.h"
#include "runtime/node/node.h"
#include "runtime/process/signals.h"

namespace rivulet::runtime::cli {
namespace {

constexpr const char* peek_footer = R"(Examples:
  rivulet peek mnist --config device.toml --rows 3
  rivulet peek sensors --config examples/sensors-json/device.toml --from latest
  rivulet peek mnist --brokers localhost:9092 --from 1200 --rows 1 --partitions 2
  rivulet peek sensors --brokers localhost:9092 --set decode.format=json --set 'decode.json={features=["temp"], target="label"}'
  rivulet peek mnist --config device.toml --json | jq .targets

Decodes records as configured. After the rows it prints feature ranges, label counts,
drop reasons and suggested configuration keys (to see only these: --rows 1000 | tail -n 40).
Reads the partitions claimed by the configuration, or all if it claims none of this topic. Joins no group,
commits nothing.
Stops after --rows rows, or at the end of the topic. --from latest shows the newest rows.)";

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
  return Error{ErrorCode::usage,
               fmt::format("--from: expected earliest, latest or an offset of 0 or more, not '{}'", text)};
}

/// Parses --partitions. If it is empty, returns `own`, or all partitions if `own` is empty.
Result<std::vector<int>> partitions_of(const std::string& text, const std::vector<int>& own, int count,
                                       const std::string& topic) {
  std::vector<int> partitions;
  const bool all = text == "all" || (text.empty() && own.empty());
  for (int p = 0; all && p < count; ++p) partitions.push_back(p);
  if (all) return partitions;
  const std::string named = text.empty() ? fmt::format("{}", fmt::join(own, ",")) : text;
  for (const auto& item : split(named, ',')) {
    int p = -1;
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), p);
    if (error != std::errc() || end != item.data() + item.size() || p < 0) {
      return Error{ErrorCode::usage, fmt::format("--partitions: '{}' is not a partition number", item)};
    }
    if (p >= count) {
      return Error{
          ErrorCode::unavailable,
          fmt::format("topic {} has partitions 0 to {}; partition {} does not exist", topic, count - 1, p)};
    }
    if (std::find(partitions.begin(), partitions.end(), p) != partitions.end())
      return Error{ErrorCode::usage, fmt::format("--partitions: {} is given twice", p)};
    partitions.push_back(p);
  }
  return partitions;
}

/// Shows rows up to the requested number.
class Peeker {
 public:
  Peeker(const PeekFlags& flags, const Config& config, stream::Decoder& decoder, std::ostream& out)
      : flags_(flags),
        decoder_(decoder),
        out_(out),
        named_labels_(!config.decode.classes.empty()),
        features_(decoder.shape().columns()),
        targets_(decoder.shape().targets),
        survey_(config, decoder) {
    for (std::size_t i = 0; i < std::min<std::size_t>(features_.size(), 8); ++i)
      names_.push_back(decoder.feature(i));
  }

  /// Returns false after the last requested row.
  bool show(const Record& record) {
    RowPosition position{record.partition, {record.offset, 0}};
    decoder_.begin(record);
    while (!enough()) {
      const auto step = decoder_.next({features_, targets_});
      if (step.kind == stream::Decoded::Kind::end) return true;
      if (step.kind == stream::Decoded::Kind::row) show_row(record, position);
      if (step.kind == stream::Decoded::Kind::dropped) show_drop(position, step.reason);
      position.at.row += step.rows;
    }
    return false;
  }
  [[nodiscard]] const RowSurvey& survey_of_rows() {
    survey_.take_narrowing(decoder_);
    return survey_;
  }

 private:
  /// Also true when the reader closed the pipe, as `| head` does.
  [[nodiscard]] bool enough() const {
    return survey_.rows() + survey_.dropped() >= flags_.rows || !out_.good();
  }
  void show_row(const Record& record, const RowPosition& position) {
    const std::string label = decoder_.label();
    const PeekedRow row{flags_.topic, position, record.timestamp_ms,
                        features_,    targets_, named_labels_ ? label : std::string_view(),
                        names_};
    out_ << (flags_.json ? row_to_json(row, decoder_.shape()) + "\n"
                         : describe_row(row, decoder_.shape(), true));
    survey_.row(features_, targets_, label);
  }
  /// Rows excluded by 'where' are counted, but not shown.
  void show_drop(const RowPosition& position, DropReason reason) {
    survey_.drop(reason, decoder_.label(), decoder_.detail());
    if (reason == DropReason::filtered) return;
    out_ << (flags_.json ? drop_to_json(flags_.topic, position, reason, decoder_.detail()) + "\n"
                         : describe_drop(flags_.topic, position, reason, decoder_.detail()));
  }

  const PeekFlags& flags_;
  stream::Decoder& decoder_;
  std::ostream& out_;
  bool named_labels_;
  std::vector<std::string> names_;
  std::vector<float> features_;
  std::vector<float> targets_;
  RowSurvey survey_;
};

class PeekCommand final : public Command {
 public:
  explicit PeekCommand(CLI::App& root)
      : app_(root.add_subcommand("peek", "print a topic's records as decoded rows; commits no offset")) {
    app_->add_option("topic", flags_.topic, "topic to read")->required()->type_name("TOPIC");
    config_.add_to(*app_, {"--brokers"});
    app_->add_option("-n,--rows", flags_.rows, "maximum number of rows to show, including dropped rows")
        ->type_name("N")
        ->capture_default_str()
        ->check(CLI::Range(1, 1'000'000));
    app_->add_option("--from", flags_.from,
                     "offset to read from; earliest: the oldest rows, latest: the newest rows")
        ->type_name("earliest|latest|OFFSET")
        ->capture_default_str();
    app_->add_option("--partitions", flags_.partitions,
                     "partitions to read (default: those claimed by the configuration, or all if it claims "
                     "none); all: also those of other devices")
        ->type_name("P[,P...]|all");
    app_->add_flag("--json", flags_.json, "print one JSON object per row");
    app_->footer(peek_footer);
  }
  [[nodiscard]] bool chosen() const override { return app_->parsed(); }

  ExitCode execute(Terminal& terminal) override {
    const auto start = start_of(flags_.from);
    if (!start) return report_error(terminal, start.error());
    const auto own = own_partitions(terminal);
    // Loading needs a job name and a supported model; their values do not matter here.
    if (config_.file().empty()) config_.set_key("job.name", "\"peek\"");
    if (config_.file().empty()) config_.set_key("model.name", "\"linear\"");
    config_.set_key("source.topics", "[" + toml_string(flags_.topic) + "]");
    config_.set_key("source.partitions", "[0]");
    const auto loaded = load_or_report(config_, terminal);
    if (!loaded) return ExitCode::configuration;
    const auto peeked = peek(terminal, loaded->config, own, start.value());
    return peeked ? ExitCode::ok : report_error(terminal, peeked.error());
  }

 private:
  /// Returns the partitions of this topic that the device claims in its configuration, before topics are
  /// overridden.
  std::vector<int> own_partitions(const Terminal& terminal) const {
    std::vector<int> own;
    for (const auto& [topic, partition] : load_config(config_.input(terminal)).config.source.claims)
      if (topic == flags_.topic) own.push_back(partition);
    return own;
  }

  Status peek(Terminal& terminal, const Config& config, const std::vector<int>& own,
              const stream::StartOffset& start) {
    const auto decoder = build_decoder(config, builtin_catalog());
    if (!decoder) return decoder.error();
    const auto& properties = config.source.kafka_properties;
    const auto count = partitions_in(properties, flags_.topic);
    if (!count) return count.error();
    const auto partitions = partitions_of(flags_.partitions, own, count.value(), flags_.topic);
    if (!partitions) return partitions.error();
    // Nothing is committed, but the client looks up the group's coordinator, and access control lists may
    // require a group name.
    const TopicReading reading{properties,         flags_.topic, peek_group(config.job.name),
                               partitions.value(), start,        flags_.rows};
    StopRequest stop{0};
    const SignalHandlers handlers(stop);  // before this line a signal kills the process immediately
    decoder.value()->watch_narrowing(true);
    Peeker peeker(flags_, config, *decoder.value(), terminal.out);
    const auto show = [&](const Record& record) { return peeker.show(record); };
    const Status read = read_topic(reading, stop, show);
    const auto& survey = peeker.survey_of_rows();
    if (flags_.json || (!read && survey.rows() + survey.dropped() + survey.filtered() == 0)) return read;
    terminal.out << survey.describe(config);
    if (partitions.value().size() < static_cast<std::size_t>(count.value()))
      terminal.out << fmt::format(
          "the topic has {} partitions, of which only these were read: {}; --partitions all reads all\n",
          count.value(), fmt::join(partitions.value(), ", "));
    terminal.out << fmt::format("{} rows shown, {} dropped; no offset was committed\n", survey.rows(),
                                survey.dropped());
    return read;
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
