#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/cli/checks/checks.h"
#include "runtime/cli/rows/row_survey.h"
#include "runtime/cli/rows/topic_rows.h"
#include "runtime/node/catalog.h"
#include "runtime/node/node.h"
#include "runtime/node/node_config.h"

namespace rivulet::runtime::cli {
namespace {

constexpr std::uint64_t rows_looked_at = 200;
// So large a class is learnt first, and for long alone.
constexpr double large_share = 0.9;

Check judged(const std::string& name, const std::string& topic, const RowSurvey& survey,
             const Config& config) {
  const std::string peek = "rivulet peek " + topic + " --config FILE shows them";
  const auto all = survey.rows() + survey.dropped();
  if (all == 0) return {name, CheckLevel::ok, "none is there yet", ""};
  if (survey.dropped() > 0)
    return {name, CheckLevel::warn,
            fmt::format("{} of {} rows are dropped, most of them: {}", survey.dropped(), all,
                        survey.worst_drop()),
            peek};
  if (!is_classification(config))
    return {name, CheckLevel::ok, fmt::format("{} looked at, none is dropped", all), ""};
  const auto most = survey.labels().shares().front();
  const bool large =
      static_cast<double>(most.rows) >= large_share * static_cast<double>(survey.labels().rows());
  return {name, large ? CheckLevel::warn : CheckLevel::ok, survey.labels().largest(),
          large ? "an accuracy below that share is worth nothing; " + peek : ""};
}

Check topic_rows_check(const Config& config, const std::string& topic, std::vector<int> partitions) {
  const std::string name = "rows of " + topic;
  const auto decoder = build_decoder(config, builtin_catalog());
  if (!decoder) return {name, CheckLevel::fail, decoder.error().message, "see rivulet validate"};
  RowSurvey survey(config, *decoder.value());
  const StopRequest never{0};
  const TopicReading reading{config.source.kafka_properties,
                             topic,
                             peek_group(config.job.name),
                             std::move(partitions),
                             {stream::StartOffset::Kind::latest, 0},
                             rows_looked_at};
  const auto read = read_topic(reading, never, [&](const Record& record) {
    survey_record(*decoder.value(), record, survey);
    return survey.rows() + survey.dropped() < rows_looked_at;
  });
  if (!read) return {name, CheckLevel::warn, read.error().message, "rows could not be looked at"};
  return judged(name, topic, survey, config);
}

}  // namespace

std::vector<Check> row_checks(const Config& config) {
  std::vector<Check> checks;
  if (config.source.type != "kafka") return checks;
  std::map<std::string, std::vector<int>> claims;
  for (const auto& [topic, partition] : config.source.claims) claims[topic].push_back(partition);
  for (auto& [topic, partitions] : claims)
    checks.push_back(topic_rows_check(config, topic, std::move(partitions)));
  return checks;
}

}  // namespace rivulet::runtime::cli
