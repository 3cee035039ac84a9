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
  joining,       ///< the group trains, and this device waits to join it
  cooling_down,  ///< the same, for some time, because this device was lost again and again
  paused,        ///< the group has too few devices to train
  connecting,
  training,
  waiting,
  idle,
  stopping,
  failed
};
std::string_view name_of(NodeState state) noexcept;

/// Read position of one partition of this device; -1 if unknown.
struct PartitionStatus {
  std::string topic;
  std::int32_t partition = 0;
  std::string state;  ///< opening | reading | paused | unreachable | stopped
  std::int64_t next_offset = -1;
  std::int64_t low_watermark = -1;
  std::int64_t high_watermark = -1;
  std::int64_t skipped = 0;  ///< offsets deleted before they were read
  std::string reason;        ///< why it is stopped, or what blocks its records
};

/// One topic of the job, as in the broker's last answer.
struct TopicStatus {
  std::string name;
  bool control = false;         ///< the job's control topic
  bool gone = false;            ///< the topic existed before
  int partitions = -1;          ///< -1 if unknown
  std::vector<int> leaderless;  ///< partitions without a leader
  bool operator==(const TopicStatus&) const = default;
};

/// Partitions claimed in the current view, as "mnist:1".
struct GroupClaims {
  bool known = false;                ///< this device has been in a view
  std::vector<std::string> claimed;  ///< partitions claimed by the members
  std::vector<std::string> trained;  ///< partitions in the agreed state
};

/// Notable changes of this device's own stream.
struct StreamFindings {
  std::vector<std::string> stuck;  ///< features that stopped varying
  std::vector<std::string> moved;  ///< features with old and new level
  std::string loss_rose;           ///< a sentence; empty if the loss has not risen
  bool operator==(const StreamFindings&) const = default;
};

/// Why a view of this device ended, or never began, while the group goes on.
enum class ViewEnd : std::uint8_t {
  lost,          ///< a member did not answer, or closed its connection
  left,          ///< a member was requested to stop
  joined,        ///< devices that waited join the group
  left_out,      ///< the others formed a view without this device
  wrong,         ///< the messages or the state of a member are wrong
  rolled_back,   ///< the model had diverged
  not_connected  ///< its members could not be connected, or not receive its state
};
inline constexpr std::size_t view_ends = 7;
std::string_view name_of(ViewEnd why) noexcept;

/// Outcome of contributions sent before their plan was known.
enum class EarlyPayload : std::uint8_t { used, wasted };
constexpr std::string_view name_of(EarlyPayload what) noexcept {
  return what == EarlyPayload::used ? "used" : "wasted";
}

using DroppedRows = CountBy<DropReason, drop_reasons>;
using TrafficBytes = CountBy<sync::Traffic, sync::traffic_kinds>;
using EarlyPayloads = CountBy<EarlyPayload, 2>;
using ViewChanges = CountBy<ViewEnd, view_ends>;

/// Status of a device for readers and probes: written by the agents, read by the http thread and the summary.
/// No agreed decision depends on it. Writers never wait for readers: numbers are atomics, all other values
/// are posted, and a post that collides with a reader is published a moment later. Invariant: rows_consumed =
/// rows_trained + rows_dropped_after_buffer + rows_waiting + rows in the current batch.
struct NodeStatus {
  NodeStatus() = default;  ///< creates no Prometheus series
  /// Creates the series of its values in `sink`, which must outlive it.
  explicit NodeStatus(MetricsSink& sink);

  // The displayed values, documented in core/metrics.def.
#define RIVULET_VALUE(key, type, first, ...) type key first;
#include "core/metrics.def"

  // Inputs of runtime/status/health/, train thread.
  std::atomic<NodeState> state{NodeState::starting};
  /// Mean loss over this device's own last rows, and the loss of a constant guess on them as the baseline.
  std::atomic<double> own_loss{not_measured};
  std::atomic<double> guess_loss{not_measured};
  std::atomic<bool> window_full{false};    ///< `loss` and `accuracy` cover a full window
  std::atomic<std::uint32_t> own_rows{0};  ///< rows in local steps that are not synchronized yet
  std::atomic<double> sync_due_s{0};       ///< maximum time between two synchronizations
  std::atomic<std::int64_t> unsaved_since_ns{
      0};  ///< time since which a due save has not reached the disk; 0 if none is pending
  std::atomic<std::int64_t> uncommitted_since_ns{
      0};  ///< time of the oldest save that is not committed; 0 if there is none

  /// Declares an optional value as measured on this device. Before the threads start.
  void measures(const Latest<double>& value);
  // train thread
  void set_phrase(std::string text);  ///< the phrase shown next to the state: "waiting for c, d"
  void set_digest(std::string hex);   ///< digest of the last agreed state
  using LedgerView = std::vector<std::pair<PartitionId, PartitionProgress>>;
  void set_ledger(LedgerView books);  ///< ledger of this device's partitions, without skipped ranges
  /// Why saved states are not announced in the control topic; empty if they are.
  void set_control_trouble(std::string why);
  void end_view(ViewEnd why, std::string sentence);  ///< counts the end of a view, and keeps the sentence
  void set_rolled_back(std::string phrase);          ///< empty if there was no recent divergence
  void set_claims(GroupClaims claims);
  void set_stream_findings(StreamFindings findings);
  void set_own_scores(OwnScores scores);
  /// Records an event that explains the loss curve. The page's charts mark its time.
  void mark(const std::string& phrase) {
    if (history_) history_->mark(phrase);
  }
  bool publish_deferred();  ///< publishes deferred values; returns false if some are still deferred
  // ingest thread, periodically
  void set_partitions(std::vector<PartitionStatus> partitions);
  /// Why no records arrive (stream::RecordSource::unreachable()); empty if nothing blocks them.
  void set_source_trouble(std::string why);
  /// Partitions of the job's topics that no device of the group claims, as "mnist:1".
  void set_unclaimed(std::vector<std::string> partitions);
  void set_health(Health health);
  // topic watch thread, periodically
  void set_topics(std::vector<TopicStatus> topics);
  /// Enables the history for the page. Before the threads start.
  void keep_history() { history_ = std::make_unique<History>(); }
  /// Ingest thread.
  void look_back(TimePoint now) {
    if (history_) history_->look(*this, now);
  }
  // any thread
  [[nodiscard]] const History* history() const noexcept { return history_.get(); }
  [[nodiscard]] std::string source_trouble() const;
  [[nodiscard]] std::string control_trouble() const;
  [[nodiscard]] std::string view_ended() const;  ///< why the last view ended; empty: none has
  [[nodiscard]] std::string rolled_back() const;
  [[nodiscard]] std::string phrase() const;
  [[nodiscard]] std::string digest() const;
  [[nodiscard]] LedgerView ledger() const;
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
  Posted<LedgerView> ledger_;
  Posted<std::vector<std::string>> unclaimed_;
  Posted<std::vector<PartitionStatus>> partitions_;
  Posted<std::string> source_trouble_;
  Posted<std::string> control_trouble_;
  Posted<std::string> view_ended_;
  Posted<std::string> rolled_back_;
  Posted<GroupClaims> claims_;
  Posted<StreamFindings> stream_findings_;
  Posted<OwnScores> own_scores_;
  Posted<std::vector<TopicStatus>> topics_;
  Posted<Health> health_;
  std::unique_ptr<History> history_;
};

}  // namespace rivulet::runtime
