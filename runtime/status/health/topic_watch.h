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

/// Queries the broker every 20 s about the job's topics: existence, partition count, partitions without a
/// leader. The consumer is not notified when these change. A topic counts as gone when it is missing in two
/// successive answers, because a freshly started broker may have incomplete metadata. Runs on its own thread,
/// because an answer may take long; no other thread waits for it. The embedded broker never deletes topics,
/// but it is queried like any other broker.
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
  const std::unique_ptr<stream::TopicLookup> lookup_;  ///< lookup of `topics_`, in order
  std::vector<TopicStatus> topics_;
  std::vector<bool> missed_;  ///< topics missing in the last answer
  TimePoint next_{};
};

}  // namespace rivulet::runtime
