#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "runtime/process/agent.h"
#include "runtime/status/node_status.h"
#include "stream/topics.h"

namespace rivulet::runtime {

/// Asks the broker every 20 s what it has of the job's topics: whether they are there, how many partitions
/// they have, which of these no broker leads. A reader learns none of it by itself. A topic counts as gone
/// when two answers in a row lack it, for a broker that has just started may not know all. Runs on a thread
/// of its own, which nobody waits for: an answer takes as long as it likes. The embedded broker, whose topics
/// are never deleted, is asked like any other.
class TopicWatch final : public Agent {
 public:
  struct Topic {
    std::string name;
    bool control = false;
  };
  TopicWatch(const Clock& clock, NodeStatus& status, std::vector<Topic> topics,
             std::unique_ptr<stream::TopicLookup> lookup);
  [[nodiscard]] std::string_view name() const noexcept override { return "topics"; }
  Turn step() override;

 private:
  const Clock& clock_;
  NodeStatus& status_;
  const std::unique_ptr<stream::TopicLookup> lookup_;  ///< of `topics_`, in their order
  std::vector<TopicStatus> topics_;
  std::vector<bool> missed_;  ///< by the last answer
  TimePoint next_{};
};

}  // namespace rivulet::runtime
