#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

#include "core/printable.h"
#include "runtime/cli/checks/checks.h"
#include "runtime/cli/rows/row_survey.h"
#include "runtime/cli/rows/topic_rows.h"
#include "runtime/node/catalog.h"
#include "runtime/node/node.h"
#include "runtime/node/node_config.h"
#include "sync/controllers/skew.h"

namespace rivulet::runtime::cli {
namespace {

constexpr std::uint64_t rows_sampled = 200;
// A model learns such a dominant class first, and for a long time only that class.
constexpr double large_share = 0.9;
// Minimum labelled rows of a partition for comparison; skew above which to warn; maximum partitions to read.
constexpr std::uint64_t rows_to_compare = 30;
constexpr double far_apart = 0.4;
constexpr int partitions_compared = 64;
// On a slow link the rows read within this time must suffice.
constexpr Duration reads_longest = std::chrono::seconds(20);

Check judged(const std::string& name, const std::string& topic, const RowSurvey& survey,
             const Config& config) {
  const std::string peek = "rivulet peek " + topic + " --config FILE shows them";
  const auto all = survey.rows() + survey.dropped();
  if (all == 0 && survey.filtered() > 0)
    return {name, CheckLevel::warn,
            fmt::format("all {} rows read are excluded by 'decode.{}.where': {}", survey.filtered(),
                        config.decode.format, config.decode.where),
            peek};
  if (all == 0) return {name, CheckLevel::ok, "none yet", ""};
  if (survey.dropped() > 0)
    return {name, survey.rows() == 0 ? CheckLevel::fail : CheckLevel::warn,
            fmt::format("{} of {} rows are dropped, most frequent reason: {}", survey.dropped(), all,
                        survey.worst_drop()),
            peek};
  if (!is_classification(config))
    return {name, CheckLevel::ok, fmt::format("{} rows read, none dropped", all), ""};
  const auto most = survey.labels().shares().front();
  const bool large =
      static_cast<double>(most.rows) >= large_share * static_cast<double>(survey.labels().rows());
  return {name, large ? CheckLevel::warn : CheckLevel::ok, survey.labels().largest(),
          large ? "a constant prediction of this class reaches this accuracy; " + peek : ""};
}

/// Reads the newest records of these partitions.
TopicReading newest(const Config& config, const std::string& topic, std::vector<int> partitions,
                    std::uint64_t records) {
  return {.properties = config.source.kafka_properties,
          .topic = topic,
          .group = peek_group(config.job.name),
          .partitions = std::move(partitions),
          .start = {stream::StartOffset::Kind::latest, 0},
          .records = records,
          .longest = reads_longest};
}

std::vector<Check> topic_rows_checks(const Config& config, const std::string& topic,
                                     std::vector<int> partitions) {
  const std::string name = "rows of " + topic;
  const auto decoder = build_decoder(config, builtin_catalog());
  if (!decoder) return {invalid_configuration(name, decoder.error())};
  decoder.value()->watch_narrowing(true);
  RowSurvey survey(config, *decoder.value());
  const StopRequest never{0};
  const auto reading = newest(config, topic, std::move(partitions), rows_sampled);
  const auto read = read_topic(reading, never, [&](const Record& record) {
    survey_record(*decoder.value(), record, survey);
    return survey.rows() + survey.dropped() < rows_sampled;
  });
  if (!read) return {{name, CheckLevel::warn, read.error().message, "rows could not be read"}};
  std::vector<Check> checks{judged(name, topic, survey, config)};
  survey.take_narrowing(*decoder.value());
  for (const auto& lost : survey.narrowing())
    checks.push_back({"numbers of " + topic, CheckLevel::warn, printable(lost),
                      "decode." + config.decode.format + ".shift, one value per feature"});
  return checks;
}

/// Returns the number of rows per label and partition, in the layout of skew_of().
std::vector<double> label_counts(const std::vector<RowSurvey>& of_partition) {
  using sync::policy::label_bins;
  std::map<std::string, std::size_t> places;
  std::vector<double> counts(of_partition.size() * label_bins);
  for (std::size_t i = 0; i < of_partition.size(); ++i)
    for (const auto& [label, rows] : of_partition[i].labels().shares()) {
      const std::size_t place = places.try_emplace(label, places.size()).first->second;
      counts[i * label_bins + place % label_bins] += static_cast<double>(rows);
    }
  return counts;
}

Check judged_labels(const std::string& topic, const std::vector<RowSurvey>& of_partition) {
  const std::string name = "labels of " + topic;
  const auto known = std::ranges::count_if(
      of_partition, [](const RowSurvey& survey) { return survey.labels().rows() >= rows_to_compare; });
  if (known < 2) return {name, CheckLevel::ok, "too few labelled rows to compare partitions", ""};
  const double skew = sync::policy::skew_of(label_counts(of_partition));
  const auto apart =
      fmt::format("skew between partitions {:.2f} (0: same label distribution, 1: no common label)", skew);
  if (skew < far_apart) return {name, CheckLevel::ok, apart, ""};
  return {name, CheckLevel::warn, apart,
          "records seem to be partitioned by content, perhaps by key: devices train on different labels, "
          "which increases synchronization traffic (docs/howto/synchronize.md, Streams that differ)"};
}

/// Compares labels between all partitions of a topic, on all devices.
Check label_check(const Config& config, const std::string& topic, int partitions) {
  const auto decoder = build_decoder(config, builtin_catalog());
  if (!decoder) return invalid_configuration("labels of " + topic, decoder.error());
  std::vector<RowSurvey> of_partition(static_cast<std::size_t>(partitions),
                                      RowSurvey(config, *decoder.value()));
  std::vector<int> all(of_partition.size());
  std::iota(all.begin(), all.end(), 0);
  const StopRequest never{0};
  const auto reading = newest(config, topic, std::move(all), rows_sampled * of_partition.size());
  const auto read = read_topic(reading, never, [&](const Record& record) {
    const auto partition = static_cast<std::size_t>(record.partition.partition);
    if (partition < of_partition.size()) survey_record(*decoder.value(), record, of_partition[partition]);
    return true;
  });
  if (!read) return {"labels of " + topic, CheckLevel::warn, read.error().message, "rows could not be read"};
  return judged_labels(topic, of_partition);
}

}  // namespace

std::vector<Check> row_checks(const Config& config) {
  std::vector<Check> checks;
  if (config.source.type != "kafka") return checks;
  std::map<std::string, std::vector<int>> claims;
  for (const auto& [topic, partition] : config.source.claims) claims[topic].push_back(partition);
  for (auto& [topic, partitions] : claims)
    std::ranges::move(topic_rows_checks(config, topic, std::move(partitions)), std::back_inserter(checks));
  if (!is_classification(config) || config.job.devices.max < 2) return checks;
  for (const auto& [topic, partitions] : claims) {
    const auto there = partitions_in(config.source.kafka_properties, topic);
    if (there && there.value() > 1 && there.value() <= partitions_compared)
      checks.push_back(label_check(config, topic, there.value()));
  }
  return checks;
}

}  // namespace rivulet::runtime::cli
