#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "sync/collective/gloo/group.h"
#include "sync/collective/transport.h"

namespace rivulet::sync::gloo_door {

/// One send or receive of the owner, in one or more chunks.
struct Operation {
  enum : std::uint8_t { ahead, counted, over };

  // constant
  std::uint64_t id = 0;
  std::uint32_t peer = 0;
  Lane lane = Lane::facts;
  bool sending = false;
  // shared
  std::atomic<std::uint32_t> chunks_left{0};
  std::atomic<std::uint8_t> phase{counted};  ///< whether it counts for the progress deadline
  std::atomic<bool> done{false};             ///< set last: after it only the owner touches the object
};

struct Chunk {
  std::unique_ptr<Work> work;
  Operation* operation = nullptr;
  std::size_t bytes = 0;
};

/// Hears of every chunk, on the waiters' threads.
class ChunkSink {
 public:
  virtual ~ChunkSink() = default;
  virtual void chunk_done(Operation& operation, std::size_t bytes) = 0;
  virtual void chunk_broken(const Operation& operation, const std::string& why) = 0;
};

/// A thread that waits for posted chunks, in order within a channel. With several channels it looks at one at
/// a time; look_elsewhere() makes it go on to the next, so that one stuck channel hides the others for one
/// tick at most.
class Waiter {
 public:
  Waiter(ChunkSink& sink, const std::string& thread_name);
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  void add(std::uint32_t channel, Chunk chunk);
  void look_elsewhere();
  /// Ends the thread and drops everything that was posted.
  void stop();

 private:
  void run();
  std::deque<Chunk>& next_channel();

  // constant
  ChunkSink& sink_;
  // shared, under mutex_
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint32_t, std::deque<Chunk>> channels_;  ///< no empty ones
  std::uint32_t channel_ = 0;
  Work* current_ = nullptr;
  bool stop_ = false;

  std::thread thread_;
};

}  // namespace rivulet::sync::gloo_door
