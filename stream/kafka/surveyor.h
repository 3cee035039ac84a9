#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "stream/kafka/leaders.h"

namespace rivulet::stream::kafka {

/// Makes surveys on a thread of its own, one at a time: librdkafka has no way to ask for watermarks or
/// metadata without waiting, and who reads records must not wait for a broker that is gone. The thread lives
/// as long as the survey. Owner: one thread, which never waits here but in wait() and at the end: for the
/// survey under way, one `patience` at most.
class Surveyor {
 public:
  /// A client of the survey's own, made and ended on its thread. nullptr: there is none.
  using OpenClient = std::function<std::unique_ptr<Client>()>;

  Surveyor() = default;
  ~Surveyor();
  Surveyor(const Surveyor&) = delete;
  Surveyor& operator=(const Surveyor&) = delete;

  [[nodiscard]] bool busy() const noexcept { return busy_; }
  /// While not busy. `client` must live until the survey is over.
  void start(rd_kafka_s* client, std::vector<Question> questions, Duration patience);
  void start(OpenClient open, std::vector<Question> questions, Duration patience);
  /// What was found since the last call; of a survey that is over, also that it is.
  std::vector<Finding> take();
  /// Until there is something to take, `longest` at most.
  void wait(Duration longest);

 private:
  void begin(std::function<void()> work);
  void run(rd_kafka_s* client, const std::vector<Question>& questions, Duration patience);

  // owner
  bool busy_ = false;
  std::thread thread_;
  // shared
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<Finding> findings_;
  bool over_ = false;
};

}  // namespace rivulet::stream::kafka
