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

#include "sync/transport/gloo/group.h"
#include "sync/transport/transport.h"

namespace rivulet::sync::gloo_door {

/// One posted send or receive, in one or more chunks.
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
  std::atomic<bool> done{false};             ///< set last; afterwards only the owner touches the object
};

struct Chunk {
  std::unique_ptr<Work> work;
  Operation* operation = nullptr;
  std::size_t bytes = 0;
};

/// Receives the result of each chunk, on the thread that waited for it.
class ChunkSink {
 public:
  virtual ~ChunkSink() = default;
  /// Returns true for the operation's last chunk.
  virtual bool chunk_done(Operation& operation, std::size_t bytes) = 0;
  virtual void chunk_broken(const Operation& operation, const std::string& why) = 0;
  /// Called when an operation is done that no thread waits for.
  virtual void announce() = 0;
};

/// State of the receives of one channel, without waiting.
class Inbox {
 public:
  virtual ~Inbox() = default;
  /// Number of chunks received so far.
  [[nodiscard]] virtual std::uint64_t arrived() const = 0;
  /// How the connection ended; empty while it is open. Once set, arrived() no longer changes.
  [[nodiscard]] virtual std::optional<std::string> broken() const = 0;
};

/// Waits for posted chunks, in order within a channel. wait_for() waits on the caller's thread, so that the
/// caller sees its message without a wake-up by another thread. All other chunks:
///   receives  the channel's Inbox counts arrivals; hand_out() and tick() take them without waiting.
///   sends     a separate thread waits, from the second tick on, for one channel at a time. tick() moves it
///             to the next, so a stuck channel delays the others by one tick at most.
class Waiter {
 public:
  Waiter(ChunkSink& sink, std::string thread_name);
  Waiter(ChunkSink& sink, std::unique_ptr<Inbox> inbox);
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  /// With an inbox, `channel` is always the same. `at_once`, without an inbox: the thread waits for the chunk
  /// now, else from the second tick on if wait_for() was not called before.
  void add(std::uint32_t channel, Chunk chunk, bool at_once);
  /// With an inbox: finishes arrived chunks, unless a thread waits for them.
  void hand_out();
  /// Waits until the operation is done, its connection breaks, or the second tick from now. Returns false if
  /// the channel has no chunk to wait for. One thread at a time.
  bool wait_for(std::uint32_t channel, const Operation& operation);
  /// Call at a steady rate.
  void tick();
  /// Ends the thread and every wait, and drops all posted chunks.
  void stop();

 private:
  enum class Who : std::uint8_t { nobody, thread, requester };

  void run();
  bool wait_at(std::uint32_t channel, Who who, std::unique_lock<std::mutex>& lock);
  void end(std::uint32_t channel, Who who, std::optional<std::string> broken,
           std::unique_lock<std::mutex>& lock);
  void hand_out(std::unique_lock<std::mutex>& lock);
  void take_over(std::unique_lock<std::mutex>& lock);
  void rouse();
  std::uint32_t next_channel();

  // constant
  ChunkSink& sink_;
  const std::string name_;
  const std::unique_ptr<Inbox> inbox_;
  // shared, under mutex_
  std::mutex mutex_;
  std::condition_variable changed_;                      ///< wakes the thread: there is work
  std::condition_variable left_;                         ///< a wait has ended
  std::map<std::uint32_t, std::deque<Chunk>> channels_;  ///< no empty queues
  std::uint32_t channel_ = 0;                            ///< channel that the thread waits for
  std::uint64_t ended_ = 0;                              ///< number of finished chunks
  Work* current_ = nullptr;                              ///< non-null while a thread waits in it
  Who waiting_ = Who::nobody;
  bool requested_ = false;  ///< a caller is in wait_for(), so the thread pauses
  bool roused_ = false;     ///< the thread may wait for posted chunks
  int ticks_ = 0;           ///< since the first chunk was posted, or since wait_for()
  bool stop_ = false;

  std::thread thread_;  ///< created on first use
};

}  // namespace rivulet::sync::gloo_door
