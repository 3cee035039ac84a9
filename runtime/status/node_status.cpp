#include "runtime/status/node_status.h"

#include <utility>

namespace rivulet::runtime {

std::string_view name_of(NodeState state) noexcept {
  switch (state) {
    case NodeState::starting: return "starting";
    case NodeState::forming: return "forming";
    case NodeState::joining: return "joining";
    case NodeState::cooling_down: return "cooling down";
    case NodeState::paused: return "paused";
    case NodeState::connecting: return "connecting";
    case NodeState::training: return "training";
    case NodeState::waiting: return "waiting";
    case NodeState::idle: return "idle";
    case NodeState::stopping: return "stopping";
    case NodeState::failed: return "failed";
  }
  return "unknown";
}

std::string_view name_of(ViewEnd why) noexcept {
  switch (why) {
    case ViewEnd::lost: return "lost";
    case ViewEnd::left: return "left";
    case ViewEnd::joined: return "joined";
    case ViewEnd::left_out: return "left_out";
    case ViewEnd::wrong: return "wrong";
    case ViewEnd::rolled_back: return "rolled_back";
    case ViewEnd::not_connected: return "not_connected";
  }
  return "unknown";
}

NodeStatus::NodeStatus(MetricsSink& sink) : sink_(&sink) {
#define RIVULET_MEASURED(...)
#define RIVULET_VALUE(key, type, first, form, caption, ...) key.bind(sink __VA_OPT__(, ) __VA_ARGS__);
#include "core/metrics.def"
}

void NodeStatus::measures(const Latest<double>& value) {
  if (sink_ == nullptr) return;
#define RIVULET_MEASURED(key, type, first, form, caption, ...) \
  if (&key == &value) key.bind(*sink_, __VA_ARGS__);
#include "core/metrics.def"
}

void NodeStatus::set_phrase(std::string text) {
  phrase_.post(std::move(text));
}

std::string NodeStatus::phrase() const {
  return phrase_.read();
}

void NodeStatus::set_digest(std::string hex) {
  digest_.post(std::move(hex));
}

std::string NodeStatus::digest() const {
  return digest_.read();
}

void NodeStatus::set_ledger(LedgerView books) {
  ledger_.post(std::move(books));
}

NodeStatus::LedgerView NodeStatus::ledger() const {
  return ledger_.read();
}

void NodeStatus::set_unclaimed(std::vector<std::string> partitions) {
  unclaimed_.post(std::move(partitions));
}

std::vector<std::string> NodeStatus::unclaimed() const {
  return unclaimed_.read();
}

bool NodeStatus::publish_deferred() {
  const bool phrase = phrase_.publish();
  const bool digest = digest_.publish();
  const bool control = control_trouble_.publish();
  const bool claims =
      claims_.publish() && stream_findings_.publish() && rolled_back_.publish() && view_ended_.publish();
  const bool scores = own_scores_.publish() && (!history_ || history_->publish());
  return ledger_.publish() && digest && phrase && control && claims && scores;
}

void NodeStatus::set_claims(GroupClaims claims) {
  claims_.post(std::move(claims));
}

GroupClaims NodeStatus::claims() const {
  return claims_.read();
}

void NodeStatus::set_stream_findings(StreamFindings findings) {
  stream_findings_.post(std::move(findings));
}

StreamFindings NodeStatus::stream_findings() const {
  return stream_findings_.read();
}

void NodeStatus::set_own_scores(OwnScores scores) {
  own_scores_.post(std::move(scores));
}

OwnScores NodeStatus::own_scores() const {
  return own_scores_.read();
}

void NodeStatus::set_topics(std::vector<TopicStatus> topics) {
  topics_.post(std::move(topics));
}

std::vector<TopicStatus> NodeStatus::topics() const {
  return topics_.read();
}

void NodeStatus::set_health(Health health) {
  health_.post(std::move(health));
}

Health NodeStatus::health() const {
  return health_.read();
}

void NodeStatus::end_view(ViewEnd why, std::string sentence) {
  ++view_changes[why];
  view_ended_.post(std::move(sentence));
}

std::string NodeStatus::view_ended() const {
  return view_ended_.read();
}

void NodeStatus::set_rolled_back(std::string phrase) {
  rolled_back_.post(std::move(phrase));
}

std::string NodeStatus::rolled_back() const {
  return rolled_back_.read();
}

void NodeStatus::set_control_trouble(std::string why) {
  control_trouble_.post(std::move(why));
}

std::string NodeStatus::control_trouble() const {
  return control_trouble_.read();
}

void NodeStatus::set_source_trouble(std::string why) {
  source_trouble_.post(std::move(why));
}

std::string NodeStatus::source_trouble() const {
  return source_trouble_.read();
}

void NodeStatus::set_partitions(std::vector<PartitionStatus> partitions) {
  partitions_.post(std::move(partitions));
}

std::vector<PartitionStatus> NodeStatus::partitions() const {
  return partitions_.read();
}

}  // namespace rivulet::runtime
