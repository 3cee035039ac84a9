#pragma once
#include <array>
#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "sync/transport/gloo/group.h"
#include "sync/transport/gloo/waiter.h"
#include "sync/transport/gloo_transport.h"

// Threads of one view:
//   train    posts sends and receives, reads atomics.
//   comm     connects. Then, every 20 ms or when a chunk broke, it feels every peer's pulse and looks at the
//            progress deadline. On the first failure it notifies the others, takes all down, then lets the
//            owner see it.
//   waiters  one for all sends, one per peer and lane for receives: lanes stay independent, and an open
//            receive for the next round holds up nobody. While train waits for an operation it does the
//            waiter's work itself. What it has not asked for: comm takes the receives that are there, at
//            each tick and, of lanes that train never waits on, as they come; of sends one thread waits.
namespace rivulet::sync::gloo_door {

/// What the threads know of one peer.
struct Peer {
  std::atomic<std::uint32_t> waiting{0};     ///< operations with it that count for the deadline
  std::atomic<std::int64_t> heard_ns{0};     ///< when its last byte came
  std::atomic<bool> awaits_shutdown{false};  ///< its shutdown may have come without our waiter having seen it
  std::atomic<bool> said_shutdown{false};
  std::atomic<bool> broken{false};  ///< a waiter or a post ran into its closed connection
  // comm thread
  std::string how;
  std::optional<TimePoint> suspected_at;
  bool departed = false;
};

enum class Stage : std::uint8_t { connecting, standing, failed };

class GlooEndpoint final : public Transport, public ChunkSink {
 public:
  GlooEndpoint(const GlooConfig& config, const Clock& clock, ConnectRequest request, Wake& wake);
  ~GlooEndpoint() override { close(); }
  GlooEndpoint(const GlooEndpoint&) = delete;
  GlooEndpoint& operator=(const GlooEndpoint&) = delete;

  std::uint32_t rank() const noexcept override { return view_.rank; }
  std::uint32_t world() const noexcept override { return view_.world(); }
  Progress connected() override;
  Ticket send(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes) override;
  Ticket receive(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) override;
  Ticket receive_ahead(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) override;
  Ticket send_ahead(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes) override;
  void promote(Ticket ticket) override;
  Progress poll(Ticket ticket) override;
  bool wait(Ticket ticket) override;
  bool healthy() override { return stage_.load(std::memory_order_acquire) != Stage::failed; }
  const Error& error() const override { return error_; }
  int lost_rank() const noexcept override { return lost_rank_; }
  TransportCounters counters() const noexcept override;
  void close() noexcept override;

 private:
  // train thread
  Ticket post(bool sending, std::uint32_t peer, Lane lane, std::span<std::byte> bytes, bool ahead);
  Status post_chunk(Operation& op, std::span<std::byte> bytes);
  Waiter& waiter_for(const Operation& op);
  std::shared_ptr<Waiter> waiter_of(const Operation& op);
  void count(Operation& op);
  void forget_finished();
  // the thread that waited: a waiter's or train
  bool chunk_done(Operation& op, std::size_t bytes) override;
  void chunk_broken(const Operation& op, const std::string& why) override;
  void announce() override { wake_.notify(); }
  // comm thread
  void run();
  bool sleep_until_tick();
  void hand_out();
  void look();
  void look_at_peer(std::uint32_t peer);
  void look_at_deadline();
  void give_up_on(std::uint32_t peer);
  void fail(Error error, int rank);
  std::optional<std::uint32_t> quietest();
  void take_down();

  [[nodiscard]] Duration silence() const {
    return clock_.now() - TimePoint(Duration(last_progress_ns_.load()));
  }

  // constant
  const GlooConfig config_;
  const Clock& clock_;
  const ViewSpec view_;
  Wake& wake_;
  ConnectRequest request_;

  // train thread
  std::unordered_map<std::uint64_t, std::unique_ptr<Operation>> operations_;
  std::uint64_t last_ticket_ = 0;

  // shared
  Cancel cancel_;
  std::vector<Peer> peers_;
  std::atomic<Stage> stage_{
      Stage::connecting};  ///< failed is set last: error_ and lost_rank_ are readable after it
  std::atomic<std::uint32_t> waiting_{0};
  std::atomic<std::int64_t> last_progress_ns_{0};
  std::array<std::atomic<std::uint64_t>, traffic_kinds> bytes_sent_{};
  std::atomic<std::uint64_t> bytes_received_{0};

  std::mutex post_mutex_;  ///< train posts; comm takes down
  std::unique_ptr<Group> group_;
  std::map<std::uint32_t, std::shared_ptr<Waiter>> waiters_;
  std::mutex alarm_mutex_;
  std::condition_variable alarm_changed_;
  bool alarm_ = false;
  bool arrived_ = false;  ///< on a lane that train does not wait on
  bool stop_ = false;
  std::map<std::uint32_t, std::string> breaks_;  ///< under alarm_mutex_: first account by peer

  // comm thread until stage_ is failed
  Error error_;
  int lost_rank_ = -1;
  bool suspects_ = false;

  std::thread comm_;
};

/// Receives have a waiter each per peer and lane; all sends share one.
constexpr std::uint32_t channel_of(std::uint32_t peer, Lane lane) {
  return peer * 16 + static_cast<std::uint32_t>(lane);
}
constexpr std::uint32_t all_sends = 0xffffffff;

constexpr std::uint32_t waiter_key(const Operation& op) {
  return op.sending ? all_sends : channel_of(op.peer, op.lane);
}

/// Lanes of a round: train comes and waits for what it has posted there.
constexpr bool is_asked_for(Lane lane) {
  return lane == Lane::facts || lane == Lane::section || lane == Lane::payload || lane == Lane::sum ||
         lane == Lane::phase || lane == Lane::speculative;
}

}  // namespace rivulet::sync::gloo_door
