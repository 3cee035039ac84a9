#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/posted.h"
#include "core/record.h"
#include "runtime/state/partition_progress.h"
#include "runtime/status/health/health.h"
#include "runtime/status/history.h"
#include "runtime/status/own_scores.h"
#include "runtime/status/status_value.h"
#include "sync/transport/transport.h"

namespace rivulet::runtime {

enum class NodeState : std::uint8_t {
  starting,
  forming,
  connecting,
  training,
  waiting,
  idle,
  stopping,
  failed
};
std::string_view name_of(NodeState state) noexcept;

/// Where one partition of this device stands; -1 = not known (yet).
struct PartitionStatus {
  std::string topic;
  std::int32_t partition = 0;
  std::string state;  ///< opening | reading | paused | unreachable | stopped
  std::int64_t next_offset = -1;
  std::int64_t low_watermark = -1;
  std::int64_t high_watermark = -1;
  std::int64_t skipped = 0;  ///< offsets deleted unread and gone over
  std::string reason;        ///< why it is stopped, or what holds records back
};

/// What the broker has of one topic of the job, by the last answer.
struct TopicStatus {
  std::string name;
  bool control = false;         ///< the job's control topic
  bool gone = false;            ///< it was there
  int partitions = -1;          ///< -1: not known (yet)
  std::vector<int> leaderless;  ///< partitions that no broker leads
  bool operator==(const TopicStatus&) const = default;
};

/// Who reads what in the current view. Partitions as "mnist:1".
struct GroupClaims {
  bool known = false;                ///< there is, or was, a view
  std::vector<std::string> claimed;  ///< by its members
  std::vector<std::string> trained;  ///< the agreed state knows them
};

/// What this device's own stream does that somebody should know.
struct StreamFindings {
  std::vector<std::string> stuck;  ///< features that do not vary any more
  std::vector<std::string> moved;  ///< features, with what they were and are
  std::string loss_rose;           ///< a sentence; empty: it has not
  bool operator==(const StreamFindings&) const = default;
};

/// Contributions that left before their plan was known.
enum class EarlyPayload : std::uint8_t { used, wasted };
constexpr std::string_view name_of(EarlyPayload what) noexcept {
  return what == EarlyPayload::used ? "used" : "wasted";
}

using DroppedRows = CountBy<DropReason, drop_reasons>;
using TrafficBytes = CountBy<sync::Traffic, sync::traffic_kinds>;
using EarlyPayloads = CountBy<EarlyPayload, 2>;

/// What a device reports about itself to people and probes: written by the agents, read by the http thread
/// and by the summary. Nothing that devices agree on is read here. No writer waits for a reader: numbers are
/// atomics, the rest is posted, and what could not be shown because somebody read is shown a moment later.
/// Invariant rows_consumed = rows_trained + rows_dropped_after_buffer + rows_waiting + rows in the current
/// batch.
struct NodeStatus {
  NodeStatus() = default;  ///< without series in Prometheus
  /// Makes the series of its values in `sink`, which outlives it.
  explicit NodeStatus(MetricsSink& sink);

  // The numbers that people see: core/metrics.def says of each what it is.
#define RIVULET_VALUE(key, type, first, ...) type key first;
#include "core/metrics.def"

  // Signs for runtime/status/health/, train thread.
  std::atomic<NodeState> state{NodeState::starting};
  /// Mean over this device's own last rows, and that of a model which knows nothing of them: what a loss is
  /// to be compared with.
  std::atomic<double> own_loss{not_measured};
  std::atomic<double> guess_loss{not_measured};
  std::atomic<bool> window_full{false};    ///< `loss` and `accuracy` are of as many rows as they are to be
  std::atomic<std::uint32_t> own_rows{0};  ///< in own steps that the group has not agreed on
  std::atomic<double> agreement_due_s{0};  ///< from one agreement to the next, at the latest
  std::atomic<std::int64_t> unsaved_since_ns{
      0};  ///< a state was to be saved and is not on the disk; 0: it is
  std::atomic<std::int64_t> uncommitted_since_ns{
      0};  ///< one was saved, and the group has committed none since

  /// Before the threads start: one of those that not every device measures is measured here.
  void measures(const Latest<double>& value);
  // train thread
  void say(std::string text);        ///< one phrase: "waiting for c, d"
  void set_digest(std::string hex);  ///< of the last agreed state
  using Books = std::vector<std::pair<PartitionId, PartitionProgress>>;
  void set_books(Books books);  ///< of this device's partitions, without their runs
  /// Why saved states do not get into the control topic; empty: they do.
  void set_control_trouble(std::string why);
  void set_went_back(std::string phrase);  ///< empty: the model has not diverged lately
  void set_claims(GroupClaims claims);
  void set_stream_findings(StreamFindings findings);
  void set_own_scores(OwnScores scores);
  /// Something that explains the course of the loss: the page's charts show when it happened.
  void mark(const std::string& phrase) {
    if (history_) history_->mark(phrase);
  }
  bool settle();  ///< shows what could not be shown; false: not everything yet
  // ingest thread, again and again
  void set_partitions(std::vector<PartitionStatus> partitions);
  /// Why nothing comes in (stream::RecordSource::unreachable()); empty: nothing is in the way.
  void set_source_trouble(std::string why);
  /// Partitions of the job's topics that no device of the group claims, as "mnist:1".
  void set_unclaimed(std::vector<std::string> partitions);
  void set_health(Health health);
  // the thread that asks the broker for its topics, again and again
  void set_topics(std::vector<TopicStatus> topics);
  /// Before the threads start: what is shown from now on is remembered for the page. Without it nothing is.
  void keep_history() { history_ = std::make_unique<History>(); }
  /// Ingest thread.
  void look_back(TimePoint now) {
    if (history_) history_->look(*this, now);
  }
  // any thread
  [[nodiscard]] const History* history() const noexcept { return history_.get(); }
  [[nodiscard]] std::string source_trouble() const;
  [[nodiscard]] std::string control_trouble() const;
  [[nodiscard]] std::string went_back() const;
  [[nodiscard]] std::string phrase() const;
  [[nodiscard]] std::string digest() const;
  [[nodiscard]] Books books() const;
  [[nodiscard]] std::vector<std::string> unclaimed() const;
  [[nodiscard]] std::vector<PartitionStatus> partitions() const;
  [[nodiscard]] GroupClaims claims() const;
  [[nodiscard]] StreamFindings stream_findings() const;
  [[nodiscard]] OwnScores own_scores() const;
  [[nodiscard]] std::vector<TopicStatus> topics() const;
  [[nodiscard]] Health health() const;

 private:
  MetricsSink* const sink_ = nullptr;
  Posted<std::string> phrase_;
  Posted<std::string> digest_;
  Posted<Books> books_;
  Posted<std::vector<std::string>> unclaimed_;
  Posted<std::vector<PartitionStatus>> partitions_;
  Posted<std::string> source_trouble_;
  Posted<std::string> control_trouble_;
  Posted<std::string> went_back_;
  Posted<GroupClaims> claims_;
  Posted<StreamFindings> stream_findings_;
  Posted<OwnScores> own_scores_;
  Posted<std::vector<TopicStatus>> topics_;
  Posted<Health> health_;
  std::unique_ptr<History> history_;
};

}  // namespace rivulet::runtime
