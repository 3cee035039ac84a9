#include <doctest/doctest.h>

#include "runtime/status/health/topic_watch.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace std::chrono_literals;

namespace {

using Answers = std::vector<stream::TopicFacts>;

/// A broker whose answer the test sets.
class Told final : public stream::TopicLookup {
 public:
  explicit Told(const Result<Answers>& answer) : answer_(answer) {}
  Result<Answers> query(Duration) override { return answer_; }

 private:
  const Result<Answers>& answer_;
};

struct Asked {
  VirtualClock clock;
  NodeStatus status;
  Result<Answers> answer{Answers{{2, {}}, {1, {}}}};
  TopicWatch watch{clock, status, {{"t"}, {"c", true}}, std::make_unique<Told>(answer)};
  /// The next request, and its delay.
  Duration ask() {
    const TimePoint from = clock.now();
    const Turn turn = watch.step();
    clock.advance_to(turn.wake_at);
    return turn.wake_at - from;
  }
};

}  // namespace

TEST_CASE("Topics: one is gone when two answers in a row lack it, within 30 s, and back with the next") {
  Asked it;
  CHECK(it.ask() == 20s);
  CHECK(it.status.topics().at(0) == TopicStatus{.name = "t", .partitions = 2});
  CHECK(it.status.topics().at(1) == TopicStatus{.name = "c", .control = true, .partitions = 1});
  it.answer = Answers{{std::nullopt, {}}, {1, {}}};
  CHECK(it.ask() == 3s);
  CHECK_FALSE(it.status.topics().at(0).gone);
  CHECK(it.ask() == 20s);
  CHECK(it.status.topics().at(0).gone);
  CHECK_FALSE(it.status.topics().at(1).gone);
  it.answer = Answers{{3, {2}}, {1, {}}};
  it.ask();
  CHECK(it.status.topics().at(0) == TopicStatus{.name = "t", .partitions = 3, .leaderless = {2}});
}

TEST_CASE("Topics: a broker that does not answer changes nothing, and a topic that never was is not gone") {
  Asked it;
  it.answer = Answers{{std::nullopt, {}}, {1, {}}};
  for (int i = 0; i < 3; ++i) it.ask();
  CHECK_FALSE(it.status.topics().at(0).gone);
  it.answer = Answers{{2, {}}, {1, {}}};
  it.ask();
  it.answer = Error{ErrorCode::unavailable, "away"};
  for (int i = 0; i < 5; ++i) CHECK(it.ask() == 3s);
  CHECK(it.status.topics().at(0) == TopicStatus{.name = "t", .partitions = 2});
}
