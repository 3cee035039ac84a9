#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "sync/transport/gloo/alarm.h"
#include "sync/transport/gloo/channels.h"
#include "sync/transport/gloo/group.h"
#include "sync/transport/gloo_transport.h"

// Threads of one view:
//   train    posts sends and receives, reads atomics.
//   comm     connects. Then, every 20 ms or when a chunk failed, it checks each peer's sentinel and the
//            progress deadline. On the first failure it notifies the peers, takes the group down, then shows
//            the failure to the owner.
//   waiters  one for all sends, one per peer and lane for receives: lanes are independent, and an open
//            receive for the next round does not block others. While train waits for an operation, it does
//            the work of the waiter itself. For other operations, comm takes finished receives at each tick,
//            and immediately on lanes that train never waits on; one thread waits for the sends.
namespace rivulet::sync::gloo_door {

/// State of one peer, shared between the threads.
struct Peer {
  std::atomic<std::uint32_t> waiting{0};     ///< operations that count for the deadline
  std::atomic<std::int64_t> received_ns{0};  ///< when its last byte was received
  std::atomic<bool> awaits_shutdown{false};  ///< its shutdown message may have arrived unseen by our waiter
  std::atomic<bool> announced_shutdown{false};
  std::atomic<bool> broken{false};  ///< a waiter or a post failed on its closed connection
  // comm thread
  std::string how;
  std::optional<TimePoint> suspected_at;
  bool departed = false;
};

enum class Stage : std::uint8_t { connecting, attached, failed };

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
  void count(Operation& op);
  void forget_finished();
  // the thread that waited: a waiter's or train
  bool chunk_done(Operation& op, std::size_t bytes) override;
  void chunk_broken(const Operation& op, const std::string& why) override;
  void announce() override { wake_.notify(); }
  // comm thread
  void run();
  bool sleep_until_tick();
  void look();
  void look_at_peer(std::uint32_t peer);
  void look_at_deadline();
  void give_up_on(std::uint32_t peer);
  void fail(Error error, int rank);
  std::optional<std::uint32_t> quietest();

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
      Stage::connecting};  ///< failed is set last; error_ and lost_rank_ may be read after it
  std::atomic<std::uint32_t> waiting_{0};
  std::atomic<std::int64_t> last_progress_ns_{0};
  std::array<std::atomic<std::uint64_t>, traffic_kinds> bytes_sent_{};
  std::atomic<std::uint64_t> bytes_received_{0};

  Channels channels_;
  Alarm alarm_;

  // comm thread until stage_ is failed
  Error error_;
  int lost_rank_ = -1;
  bool suspects_ = false;

  std::thread comm_;
};

}  // namespace rivulet::sync::gloo_door
