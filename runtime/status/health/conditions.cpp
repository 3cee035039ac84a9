#include "runtime/status/health/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace rivulet::runtime {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// Half of the one-minute target for alerting an operator.
constexpr Duration sure_after = seconds(30);
constexpr std::uint64_t many = 10;
constexpr Duration silence_patience = seconds(15);
// If a transaction takes longer, its producer has died or forgotten to end it.
constexpr Duration transaction_patience = minutes(1);
constexpr Duration stalled_after = minutes(2);
constexpr Duration unsaved_after = minutes(1);
constexpr Duration uncommitted_after = minutes(3);
constexpr Duration silence_least = minutes(5);
constexpr int gaps_of_silence = 5;
constexpr std::size_t named_most = 3;

std::string span(Duration d) {
  const double s = to_seconds(d);
  if (s < 120) return fmt::format("{:.0f} s", s);
  return s < 7200 ? fmt::format("{:.0f} min", s / 60) : fmt::format("{:.0f} h", s / 3600);
}

std::string name_of(const PartitionStatus& p) {
  return p.topic + ":" + std::to_string(p.partition);
}

/// "a; b; c; and 2 more".
std::string listed(const std::vector<std::string>& all, const char* between) {
  std::string out;
  for (std::size_t i = 0; i < std::min(all.size(), named_most); ++i)
    out += (out.empty() ? "" : between) + all[i];
  if (all.size() > named_most) out += fmt::format("{}and {} more", between, all.size() - named_most);
  return out;
}

std::string brokers_unreachable(const VitalSigns& s) {
  return s.source_trouble;
}

std::string topic_gone(const VitalSigns& s) {
  std::vector<std::string> gone;
  for (const TopicStatus& topic : s.topics)
    if (topic.gone)
      gone.push_back(fmt::format("{} \"{}\" is gone: it was deleted, or this user has lost access to it",
                                 topic.control ? "control topic" : "topic", topic.name));
  return listed(gone, "; ");
}

const TopicStatus* topic_of(const VitalSigns& s, const PartitionStatus& p) {
  const auto found = std::ranges::find(s.topics, p.topic, &TopicStatus::name);
  return found == s.topics.end() || found->gone ? nullptr : &*found;
}

/// Returns why a claimed partition cannot be read; empty if it can.
std::string why_unread(const VitalSigns& s, const VitalSigns::Partition& partition) {
  const PartitionStatus& p = partition.status;
  if (const TopicStatus* topic = topic_of(s, p); topic != nullptr && topic->partitions >= 0) {
    if (p.partition >= topic->partitions)
      return fmt::format("the topic has {} partition{} now", topic->partitions,
                         topic->partitions == 1 ? "" : "s");
    if (std::ranges::count(topic->leaderless, p.partition) > 0) return "the partition has no leader";
  }
  if (p.state == "stopped") return p.reason;
  if (p.state == "opening" && partition.standing >= sure_after)
    return p.reason.empty() ? "no broker has reported its start offset" : p.reason;
  // Reported after 10 s of silence; a broker that merely restarts is back within another 10 s.
  if (p.state == "unreachable" && partition.standing >= silence_patience) return p.reason;
  return !p.reason.empty() && partition.standing >= transaction_patience ? p.reason : "";
}

std::string partition_unread(const VitalSigns& s) {
  std::vector<std::string> unread;
  for (const auto& partition : s.partitions)
    if (const auto why = why_unread(s, partition); !why.empty())
      unread.push_back(name_of(partition.status) + " is not read: " + why);
  return listed(unread, "; ");
}

/// What a device outside a view does; empty if it is in a view.
std::string outside_a_view(const VitalSigns& s) {
  if (s.state == NodeState::failed || s.state == NodeState::stopping || s.world == 0)
    return s.phrase.empty() ? std::string(rivulet::runtime::name_of(s.state)) : s.phrase;
  return "";
}

/// The same, if it is in `state`.
template <NodeState state>
std::string in_state(const VitalSigns& s) {
  return s.state == state ? outside_a_view(s) : "";
}

std::string forming(const VitalSigns& s) {
  const bool another =
      s.state == NodeState::joining || s.state == NodeState::cooling_down || s.state == NodeState::paused;
  return another ? "" : outside_a_view(s);
}

std::string rows_refused(const VitalSigns& s) {
  if (s.refused.hopeless())
    return fmt::format("the last {} row{} rejected, no row was valid for {}; most frequent reason: {}",
                       s.refused.count, s.refused.count == 1 ? " was" : "s were", span(s.refused.lasting),
                       s.refused.most_common);
  if (s.rowless.hopeless())
    return fmt::format("no rows in the last {} record{}, for {}", s.rowless.count,
                       s.rowless.count == 1 ? "" : "s", span(s.rowless.lasting));
  return "";
}

std::string batches_lost(const VitalSigns& s) {
  if (!s.lost.hopeless()) return "";
  return fmt::format(
      "for {}, gradients have not been finite or have exploded, and {} rows were dropped: the model has "
      "diverged",
      span(s.lost.lasting), s.lost.count);
}

std::string loss_not_finite(const VitalSigns& s) {
  return s.loss_finite ? "" : "the loss is not finite: the model has diverged";
}

std::string loss_out_of_range(const VitalSigns& s) {
  if (s.diverged < sure_after || !s.loss || !s.guess) return "";
  return fmt::format(
      "the loss is {:.4g}, far above the {:.4g} of a constant prediction, and has not halved for {}: the "
      "model has diverged",
      *s.loss, *s.guess, span(s.diverged));
}

std::string no_synchronization(const VitalSigns& s) {
  if (s.world == 0 || s.stalled < std::max(stalled_after, 2 * s.sync_due)) return "";
  return fmt::format("rows are waiting, but the group has applied no round for {}", span(s.stalled));
}

std::string not_announced(const VitalSigns& s) {
  return s.control_trouble;
}

std::string not_saved(const VitalSigns& s) {
  if (s.unsaved >= unsaved_after)
    return fmt::format(
        "no checkpoint has reached the disk for {}: the disk is full, fails or hangs (see the log)",
        span(s.unsaved));
  if (s.uncommitted < uncommitted_after) return "";
  return fmt::format(
      "saved checkpoints have not been committed for {}: too few devices of the group have saved them",
      span(s.uncommitted));
}

std::string stream_silent(const VitalSigns& s) {
  if (s.silent < std::max(silence_least, gaps_of_silence * s.longest_gap)) return "";
  return s.any_record ? fmt::format("no record for {}; the longest gap before was {}", span(s.silent),
                                    span(std::max<Duration>(s.longest_gap, seconds(1))))
                      : fmt::format("no record since the start, {} ago", span(s.silent));
}

std::string partitions_unclaimed(const VitalSigns& s) {
  if (s.unclaimed.empty()) return "";
  return fmt::format("no device of the group claims {}: assign {} to a device (source.partitions)",
                     listed(s.unclaimed, ", "), s.unclaimed.size() == 1 ? "it" : "them");
}

std::string rolled_back(const VitalSigns& s) {
  return s.rolled_back;
}

std::string feature_stuck(const VitalSigns& s) {
  if (s.stream.stuck.empty()) return "";
  return fmt::format("{} constant now: {}", s.stream.stuck.size() == 1 ? "a feature is" : "features are",
                     listed(s.stream.stuck, ", "));
}

std::string feature_moved(const VitalSigns& s) {
  if (s.stream.moved.empty()) return "";
  return fmt::format("{} moved: {}", s.stream.moved.size() == 1 ? "a feature has" : "features have",
                     listed(s.stream.moved, ", "));
}

std::string loss_rose(const VitalSigns& s) {
  return s.stream.loss_rose;
}

constexpr std::array all_conditions{
    Condition{"brokers_unreachable", Grade::waits, brokers_unreachable},
    Condition{"topic_gone", Grade::useless, topic_gone},
    Condition{"partition_unread", Grade::useless, partition_unread},
    Condition{"rows_refused", Grade::useless, rows_refused},
    Condition{"batches_lost", Grade::useless, batches_lost},
    Condition{"loss_not_finite", Grade::useless, loss_not_finite},
    Condition{"loss_out_of_range", Grade::useless, loss_out_of_range},
    Condition{"no_synchronization", Grade::useless, no_synchronization},
    Condition{"not_announced", Grade::waits, not_announced},
    Condition{"forming", Grade::waits, forming, true},
    Condition{"joining", Grade::waits, in_state<NodeState::joining>, true},
    Condition{"cooling_down", Grade::waits, in_state<NodeState::cooling_down>, true},
    Condition{"paused", Grade::waits, in_state<NodeState::paused>, true},
    Condition{"not_saved", Grade::impaired, not_saved},
    Condition{"partitions_unclaimed", Grade::impaired, partitions_unclaimed},
    Condition{"stream_silent", Grade::impaired, stream_silent},
    Condition{"rolled_back", Grade::impaired, rolled_back},
    Condition{"loss_rose", Grade::impaired, loss_rose},
    Condition{"feature_stuck", Grade::impaired, feature_stuck},
    Condition{"feature_moved", Grade::impaired, feature_moved},
};

}  // namespace

bool BadRun::hopeless() const noexcept {
  return count > 0 && lasting >= sure_after && (!any_good || count >= many || spread >= sure_after);
}

std::span<const Condition> conditions() noexcept {
  return all_conditions;
}

bool is_phrase_of_state(std::string_view condition) noexcept {
  const auto* const found = std::ranges::find(all_conditions, condition, &Condition::name);
  return found != all_conditions.end() && found->of_state;
}

Health judge(const VitalSigns& signs) {
  Health health{.judged = true, .findings = {}};
  for (const Condition& condition : conditions())
    if (auto phrase = condition.phrase(signs); !phrase.empty())
      health.findings.push_back({condition.name, condition.grade, std::move(phrase)});
  return health;
}

}  // namespace rivulet::runtime
