#include "runtime/status/health/topic_watch.h"

#include <utility>

namespace rivulet::runtime {
namespace {

constexpr Duration query_interval = std::chrono::seconds(20);
/// Bounded, because shutdown may have to wait for a pending request.
constexpr Duration patience = std::chrono::seconds(2);
constexpr Duration query_again = std::chrono::seconds(3);

}  // namespace

TopicWatch::TopicWatch(const Clock& clock, NodeStatus& status, std::vector<Topic> topics,
                       std::unique_ptr<stream::TopicLookup> lookup)
    : clock_(clock), status_(status), lookup_(std::move(lookup)), missed_(topics.size()) {
  for (Topic& topic : topics) topics_.push_back({.name = std::move(topic.name), .control = topic.control});
}

Turn TopicWatch::step() {
  if (clock_.now() < next_) return {.wake_at = next_};
  const auto answer = lookup_->query(patience);
  bool doubtful = !answer;
  for (std::size_t i = 0; answer && i < topics_.size(); ++i) {
    const stream::TopicFacts& facts = answer.value()[i];
    TopicStatus& topic = topics_[i];
    // A topic that never existed is not gone: its reader waits for it and reports the wait.
    const bool misses = !facts.partitions && topic.partitions >= 0;
    topic.gone = misses && missed_[i];
    doubtful = doubtful || (misses && !missed_[i]);
    missed_[i] = misses;
    if (!facts.partitions) continue;
    topic.partitions = *facts.partitions;
    topic.leaderless = facts.leaderless;
  }
  status_.set_topics(topics_);
  next_ = clock_.now() + (doubtful ? query_again : query_interval);
  return {.work = 1, .wake_at = next_};
}

}  // namespace rivulet::runtime
