#pragma once
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sync/collective/memory_transport.h"

/// Private to the in-memory network.
namespace rivulet::sync::memory {

class Endpoint;

/// One send on its way.
struct Message {
  TimePoint sent_at{};     ///< when the wire began with it
  TimePoint left_at{};     ///< when its last byte was on the wire
  TimePoint arrives_at{};  ///< when its last byte is there
  Duration chunk{};        ///< a chunk of it takes this long
  bool lost = false;       ///< it and all behind it on its lane never arrive
  std::vector<std::byte> bytes;
};

/// FIFO of one direction, pair and lane.
struct Channel {
  std::deque<Message> messages;
  std::uint64_t sent = 0;
};

/// All lanes of one direction and pair share its bandwidth.
struct Wire {
  TimePoint free_at{};
  TimePoint last_arrival{};
};

/// What a device shares between all its peers.
struct OwnLink {
  MemoryNetwork::Link link;
  TimePoint up_free_at{};
  TimePoint down_free_at{};
};

struct Member {
  std::string id;
  OwnLink* own = nullptr;        ///< of the network; null: none
  Endpoint* endpoint = nullptr;  ///< while it is alive
  bool joined = false;
  TimePoint joined_at{};
  std::optional<TimePoint> gone_at;
  std::optional<std::uint32_t> lost;  ///< whom it had lost when it left: its last words
  ErrorCode lost_how = ErrorCode::peer_lost;
};

/// Everybody who connects with one token.
struct View {
  std::vector<Member> members;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Wire> wires;
  std::map<std::tuple<std::uint32_t, std::uint32_t, Lane>, Channel> channels;
  TimePoint connected_at{};
  std::size_t gone = 0;
  std::size_t joined = 0;
  [[nodiscard]] bool complete() const { return joined == members.size(); }
};

/// One posted operation that has not finished.
struct Operation {
  bool sending = false;
  bool ahead = false;
  std::uint32_t peer = 0;
  Lane lane = Lane::facts;
  std::size_t size = 0;
  std::span<std::byte> into;
  Message message;  ///< of a send: its times, without the bytes
};

/// One rank's end of a view.
class Endpoint final : public Transport {
 public:
  Endpoint(std::shared_ptr<MemoryNetwork::State> state, const ViewSpec& spec, const Clock& clock, Wake& wake);
  ~Endpoint() override;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  std::uint32_t rank() const noexcept override { return spec_.rank; }
  std::uint32_t world() const noexcept override { return spec_.world(); }
  Progress connected() override;
  Ticket send(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes) override;
  Ticket receive(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) override;
  Ticket receive_ahead(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) override;
  void promote(Ticket ticket) override;
  Progress poll(Ticket ticket) override;
  bool healthy() override;
  const Error& error() const override { return error_; }
  int lost_rank() const noexcept override { return lost_rank_; }
  TransportCounters counters() const noexcept override { return counters_; }
  void close() noexcept override;

  /// For the network, under its mutex.
  void leave_locked();
  [[nodiscard]] Wake& wake() { return wake_; }

 private:
  using Operations = std::unordered_map<std::uint64_t, Operation>;

  Progress connected_locked();
  Progress miss_members();
  Ticket open(std::uint32_t peer, std::size_t size);
  Ticket post_receive(std::uint32_t peer, Lane lane, std::span<std::byte> bytes, bool ahead);
  void start_waiting(Operation& op, TimePoint now);
  void look(TimePoint now, std::uint64_t ticket);
  void settle(TimePoint now, std::uint64_t ticket);
  bool deliver(const Message& message, const Operation& op);
  void finish(Operations::iterator it, TimePoint at);
  void look_for_the_dead(TimePoint now);
  [[nodiscard]] bool waits_for(std::uint32_t peer) const;
  void time(Message& message, TimePoint now, Wire& wire, std::uint32_t peer, std::size_t bytes) const;
  [[nodiscard]] static TimePoint latest_chunk(const Message& message, Duration extra, TimePoint now);
  void check_deadline(TimePoint now);
  [[nodiscard]] TimePoint gone_visible_at(std::uint32_t peer) const;
  void notify_due(TimePoint at);
  Progress lose(std::uint32_t peer, const char* how);
  Progress fail(Error error, int rank);

  // constant
  const std::shared_ptr<MemoryNetwork::State> state_;
  const ViewSpec spec_;
  const Clock& clock_;
  Wake& wake_;
  View* view_ = nullptr;
  TimePoint joined_at_{};
  // owner's thread
  bool connected_ = false;
  bool failed_ = false;
  Error error_;
  int lost_rank_ = -1;
  TransportCounters counters_;
  std::uint64_t last_ticket_ = 0;
  Operations operations_;
  std::map<std::pair<std::uint32_t, Lane>, std::deque<std::uint64_t>> posted_;  ///< receives in order
  std::size_t waiting_ = 0;  ///< operations that count for the deadline
  TimePoint last_progress_{};
  std::set<std::uint32_t> said_bye_;
  std::set<std::uint32_t> departed_;
};

}  // namespace rivulet::sync::memory

namespace rivulet::sync {

struct MemoryNetwork::State {
  std::mutex mutex;
  Link link;
  TransportConfig config;
  Loss loss;
  std::set<std::string, std::less<>> dead;
  std::map<std::string, memory::OwnLink, std::less<>> own_links;  ///< by device id
  std::map<std::uint64_t, memory::View> views;

  memory::View& join(const ViewSpec& spec, memory::Endpoint* endpoint);
  void forget_finished_views();
  [[nodiscard]] memory::OwnLink* own_link_of(const std::string& device_id) {
    const auto own = own_links.find(device_id);
    return own == own_links.end() ? nullptr : &own->second;
  }
  [[nodiscard]] static Duration time_on(const Link& link, std::size_t bytes) {
    if (link.bytes_per_second <= 0) return Duration::zero();
    return from_seconds(static_cast<double>(bytes) / link.bytes_per_second);
  }
};

}  // namespace rivulet::sync
