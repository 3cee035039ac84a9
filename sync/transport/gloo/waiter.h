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

/// Hears of every chunk, on the thread that waited for it.
class ChunkSink {
 public:
  virtual ~ChunkSink() = default;
  /// True: it was the operation's last one.
  virtual bool chunk_done(Operation& operation, std::size_t bytes) = 0;
  virtual void chunk_broken(const Operation& operation, const std::string& why) = 0;
  /// An operation is done that nobody waits for.
  virtual void announce() = 0;
};

/// What is known of the receives of one channel without waiting.
class Inbox {
 public:
  virtual ~Inbox() = default;
  /// Chunks that are there, since the beginning.
  [[nodiscard]] virtual std::uint64_t arrived() const = 0;
  /// How the connection ended; empty: it has not. What arrived() says afterwards is final.
  [[nodiscard]] virtual std::optional<std::string> broken() const = 0;
};

/// Waits for posted chunks, in order within a channel: on the thread of who asks (wait_for), so that a
/// message is seen by who needs it without a wake-up in between. What nobody asks for:
///   receives  their channel's Inbox says what is there; hand_out() and tick() take it, nobody waits.
///   sends     a thread of its own waits, from the second tick on. It looks at one channel at a time, and
///             tick() moves it to the next: one stuck channel hides the others for one tick at most.
class Waiter {
 public:
  Waiter(ChunkSink& sink, std::string thread_name);
  Waiter(ChunkSink& sink, std::unique_ptr<Inbox> inbox);
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  /// With an inbox always the same channel. `at_once`, without: its thread takes it up now, else after the
  /// second tick, unless somebody asks before.
  void add(std::uint32_t channel, Chunk chunk, bool at_once);
  /// With an inbox: finishes what is there, unless somebody waits for it.
  void hand_out();
  /// Waits until the operation is done, its connection breaks, or the second tick from now. False: nothing of
  /// it is here to wait for. One thread at a time.
  bool wait_for(std::uint32_t channel, const Operation& operation);
  /// Called at a steady pace.
  void tick();
  /// Ends the thread and every wait, and drops everything that was posted.
  void stop();

 private:
  enum class Who : std::uint8_t { nobody, thread, asker };

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
  std::condition_variable changed_;                      ///< for the thread: there is something to do
  std::condition_variable left_;                         ///< somebody has left a wait
  std::map<std::uint32_t, std::deque<Chunk>> channels_;  ///< no empty ones
  std::uint32_t channel_ = 0;                            ///< where the thread is
  std::uint64_t ended_ = 0;                              ///< chunks
  Work* current_ = nullptr;                              ///< somebody waits in it
  Who waiting_ = Who::nobody;
  bool asked_ = false;   ///< somebody is inside wait_for(): the thread keeps out
  bool roused_ = false;  ///< the thread may take up what is here
  int ticks_ = 0;        ///< since the first chunk came, or since somebody asked
  bool stop_ = false;

  std::thread thread_;  ///< made when first needed
};

}  // namespace rivulet::sync::gloo_door
