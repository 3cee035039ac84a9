#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "runtime/cli/checks/checks.h"
#include "runtime/cli/child.h"
#include "runtime/node/control_topic.h"
#include "runtime/status/health/unclaimed.h"
#include "stream/topics.h"

namespace rivulet::runtime::cli {
namespace {

constexpr Duration claim_patience = std::chrono::seconds(5);
constexpr int reading_step_ms = 10;

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t most = 5;
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) out += (i == 0 ? "" : ", ") + names[i];
  return names.size() > most ? out + fmt::format(" and {} more", names.size() - most) : out;
}

/// Returns the claims of the other members in the last view; nullopt if there is no view yet.
std::optional<std::vector<std::string>> claims_of_others(const Config& config) {
  auto topic = ControlTopic::open(config, false, [] { pause_ms(reading_step_ms); });
  if (!topic || !topic.value().read_all(claim_patience)) return std::nullopt;
  const auto& view = topic.value().fold().view;
  if (view.number == 0) return std::nullopt;
  std::vector<std::string> claimed;
  for (std::size_t rank = 0; rank < view.members.size(); ++rank)
    if (view.members[rank] != config.device.id)
      claimed.insert(claimed.end(), view.owners[rank].begin(), view.owners[rank].end());
  return claimed;
}

}  // namespace

Check judge_claims(const Config& config, const std::vector<TopicStatus>& topics,
                   const std::optional<std::vector<std::string>>& others) {
  GroupClaims claims{.known = true, .claimed = others.value_or(std::vector<std::string>()), .trained = {}};
  for (const auto& [topic, partition] : config.source.claims)
    claims.claimed.push_back(topic + ":" + std::to_string(partition));
  const auto unclaimed = unclaimed_partitions(claims, topics);
  if (unclaimed.empty()) return {"partitions", CheckLevel::ok, "each is claimed by a device", ""};
  if (config.job.devices.max > 1 && !others)
    return {"partitions", CheckLevel::ok,
            fmt::format("{} {} left for other devices to claim", listed(unclaimed),
                        unclaimed.size() == 1 ? "is" : "are"),
            ""};
  return {"partitions", CheckLevel::warn, "no device claims " + listed(unclaimed),
          "no device reads their rows: assign them to a device with source.partitions"};
}

std::vector<Check> claim_checks(const Config& config) {
  if (config.source.type != "kafka") return {};
  const auto facts =
      stream::make_topic_lookup(config.source.kafka_properties, config.source.topics)->query(claim_patience);
  if (!facts) return {};  // broker_checks() reported why
  std::vector<TopicStatus> topics;
  for (std::size_t i = 0; i < facts.value().size(); ++i)
    topics.push_back(
        {.name = config.source.topics[i], .partitions = facts.value()[i].partitions.value_or(-1)});
  return {judge_claims(config, topics,
                       config.job.devices.max > 1 ? claims_of_others(config) : std::vector<std::string>())};
}

}  // namespace rivulet::runtime::cli
