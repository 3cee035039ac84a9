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

/// Runs surveys on a separate thread, one at a time: librdkafka can query watermarks and metadata only by
/// blocking, and the thread that reads records must not block on an unreachable broker. The thread lives as
/// long as the survey. Owner: one thread, which blocks only in wait() and in the destructor: for at most one
/// `patience`, if a survey is in progress.
class Surveyor {
 public:
  /// Opens a separate client for a survey, on the survey's thread. Returns nullptr on failure.
  using OpenClient = std::function<std::unique_ptr<Client>()>;

  Surveyor() = default;
  ~Surveyor();
  Surveyor(const Surveyor&) = delete;
  Surveyor& operator=(const Surveyor&) = delete;

  [[nodiscard]] bool busy() const noexcept { return busy_; }
  /// Requires !busy(). `client` must live until the survey is over.
  void start(rd_kafka_s* client, std::vector<Question> questions, Duration patience);
  void start(OpenClient open, std::vector<Question> questions, Duration patience);
  /// Returns the findings since the last call; also detects the end of the survey.
  std::vector<Finding> take();
  /// Waits up to `longest` for findings or the end of the survey.
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
