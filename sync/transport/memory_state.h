#pragma once
#include <array>
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

#include "sync/transport/gathering.h"
#include "sync/transport/memory_transport.h"

/// Private to the in-memory network.
namespace rivulet::sync::memory {

class Endpoint;

/// Times of bytes in flight.
struct Flight {
  TimePoint sent_at{};                      ///< when the wire began to send them
  TimePoint left_at{};                      ///< when the last byte was on the wire
  TimePoint arrives_at = TimePoint::max();  ///< when the last byte arrives; max: not sent yet
  Duration chunk{};                         ///< time of one chunk
};

/// One message on the link that its receiver shares between all senders.
struct Landing {
  TimePoint reached_at{};  ///< when the last byte would arrive without other senders
  Duration takes{};        ///< time on the link
  TimePoint ends_at{};
  TimePoint free_at{};         ///< when the link has refilled its token bucket; before ends_at after a burst
  TimePoint contributed_at{};  ///< the ends_at that the receiver was notified of
};

/// One message in flight.
struct Message : Flight {
  TimePoint taken_at{};  ///< when the send was done; before left_at if the device has its own link
  bool lost = false;     ///< this message and all later ones of its lane never arrive
  std::vector<std::byte> bytes;
  std::shared_ptr<Landing> landing;  ///< null: the receiver has no shared link
  [[nodiscard]] TimePoint here_at() const { return landing ? landing->ends_at : arrives_at; }
};

/// FIFO of one lane, in one direction, between two ranks.
struct Channel {
  std::deque<Message> messages;
  std::uint64_t sent = 0;
};

/// Bandwidth shared by all lanes between two ranks, in one direction.
struct Wire {
  TimePoint free_at{};
  TimePoint last_arrival{};
};

/// The link that a device shares between all its peers.
struct OwnLink {
  /// Adds a message. Those that reach the link earlier pass first; announced ones that reach it later are
  /// delayed.
  void land(const std::shared_ptr<Landing>& landing);

  MemoryNetwork::Link link;
  TimePoint up_free_at{};
  std::uint32_t up_to = 0;                         ///< rank that it sends to until up_free_at
  TimePoint down_free_at{};                        ///< free again after the landed messages
  std::vector<std::shared_ptr<Landing>> landings;  ///< messages in flight, ordered by reached_at
};

struct Member {
  std::string id;
  OwnLink* own = nullptr;        ///< owned by the network; null: none
  Endpoint* endpoint = nullptr;  ///< while the device is alive
  bool joined = false;
  TimePoint joined_at{};
  TimePoint last_contributed = TimePoint::min();  ///< when its last contribution has reached the peers
  std::optional<TimePoint> gone_at;
  std::optional<std::uint32_t> lost;  ///< the rank it had lost when it left
  ErrorCode lost_how = ErrorCode::peer_lost;
};

/// One exchange: each rank contributes once.
struct Exchange {
  Exchange(std::size_t world, std::shared_ptr<ShareCheck> check);
  void add(std::uint32_t rank, const Flight& flight);
  [[nodiscard]] bool complete() const { return contributors > 0 && so_far == contributors; }

  std::shared_ptr<Gathered> gathered;
  std::vector<Flight> contributed;  ///< by rank
  std::vector<bool> watching;       ///< by rank: to be notified of the first contribution
  std::uint32_t contributors = 0;   ///< expected contributions; 0: no rank has entered
  std::uint32_t so_far = 0;         ///< contributions received
  std::size_t bytes = 0;            ///< bytes of all contributions, headers included
  std::size_t left = 0;             ///< ranks that have taken the result
  std::uint32_t last_rank = 0;      ///< rank whose bytes arrive last
  TimePoint first_arrival = TimePoint::max();
  TimePoint last_arrival = TimePoint::min();
  TimePoint last_but_one = TimePoint::min();  ///< last arrival of all ranks except last_rank
};

/// Exchanges of a lane that not all ranks have left.
struct ExchangesOfLane {
  std::uint64_t first = 0;  ///< index of the oldest
  std::deque<Exchange> open;
};

/// All ranks that connect with one token.
struct View {
  Exchange& exchange(Lane lane, std::uint64_t index);
  void leave_exchange(Lane lane, std::uint64_t index);

  std::unique_ptr<SharedWork> work;  ///< null: this view uses only messages
  std::array<ExchangesOfLane, lanes_end> exchanges;
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
  Message message;  ///< times of a send, without its bytes
};

/// An exchange that this rank has entered.
struct Entered {
  std::uint64_t ticket = 0;
  Lane lane = Lane::facts;
  std::uint64_t index = 0;
  TimePoint at{};
  bool patient = false;
  bool done = false;
  TimePoint left_at = TimePoint::min();  ///< when this rank's bytes left
  std::size_t own_bytes = 0;
};

/// One rank's end of a view.
class Endpoint final : public Transport, public Gathering {
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
  Ticket send_ahead(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes) override;
  void promote(Ticket ticket) override;
  Progress poll(Ticket ticket) override;
  bool healthy() override;
  const Error& error() const override { return error_; }
  int lost_rank() const noexcept override { return lost_rank_; }
  TransportCounters counters() const noexcept override { return counters_; }
  void close() noexcept override;
  Gathering* gathering() noexcept override { return view_->work ? this : nullptr; }

  Ticket contribute(Contribution contribution) override;
  std::shared_ptr<Gathered> take(Ticket ticket) override;
  bool anything_contributed(Lane lane) override;
  std::span<const std::byte> received(Lane lane, std::uint32_t rank) override;
  SharedWork& work() override;

  /// Called by the network, under its mutex.
  void leave_locked();
  [[nodiscard]] Wake& wake() { return wake_; }

 private:
  using Operations = std::unordered_map<std::uint64_t, Operation>;

  Progress connected_locked();
  Progress miss_members();
  Ticket open(std::uint32_t peer, std::size_t size);
  Ticket post_send(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes, bool ahead);
  Ticket post_receive(std::uint32_t peer, Lane lane, std::span<std::byte> bytes, bool ahead);
  void start_waiting(TimePoint now);
  void look(TimePoint now, std::uint64_t ticket);
  void conclude(TimePoint now, std::uint64_t ticket);
  void wait_to_land(const Message& message);
  bool deliver(const Message& message, const Operation& op);
  void finish(Operations::iterator it, TimePoint at);
  void look_for_the_dead(TimePoint now);
  [[nodiscard]] bool waits_for(std::uint32_t peer) const;
  void wake_at_deadline(TimePoint now);
  [[nodiscard]] Duration chunk_of(Lane lane, Duration takes, std::size_t bytes) const;
  void time(Message& message, TimePoint now, Wire& wire, std::uint32_t peer, Lane lane,
            std::size_t bytes) const;
  [[nodiscard]] static TimePoint latest_chunk(const Flight& flight, Duration extra, TimePoint now);
  void check_deadline(TimePoint now);
  [[nodiscard]] TimePoint gone_visible_at(std::uint32_t peer) const;
  void notify_due(TimePoint at);
  Progress lose(std::uint32_t peer, const char* how);
  Progress fail(Error error, int rank);
  // memory_gathering.cpp
  std::uint64_t& next_of(Lane lane) { return next_exchange_.at(static_cast<std::size_t>(lane)); }
  std::vector<Entered>::iterator find_entered(std::uint64_t ticket);
  void deposit(Exchange& exchange, Entered& entered, Contribution contribution);
  void hear(const Exchange& exchange, const Entered& theirs, const Flight& flight);
  [[nodiscard]] TimePoint ready_at(const Entered& entered, const Exchange& exchange) const;
  void conclude_gathered(TimePoint now, Entered& entered);
  [[nodiscard]] bool received_bye_from(std::uint32_t peer, TimePoint now) const;
  [[nodiscard]] bool still_to_hear(std::uint32_t peer, TimePoint now) const;
  std::optional<std::uint32_t> latest_contribution(TimePoint now);

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
  std::map<std::pair<std::uint32_t, Lane>, std::deque<std::uint64_t>>
      posted_;  ///< open receives, in the order of posting
  struct {
    std::size_t waiting = 0;  ///< operations with a deadline
    TimePoint last_progress{};
    TimePoint alarm_at = TimePoint::min();  ///< time of the last requested alarm
  } deadline_;
  std::vector<Entered> entered_;  ///< exchanges whose result was not taken yet
  TimePoint wires_free_at_{};     ///< when this rank's contributions have left
  std::array<std::uint64_t, lanes_end> next_exchange_{};
  std::set<std::uint32_t> announced_shutdown_;
  std::set<std::uint32_t> departed_;
};

}  // namespace rivulet::sync::memory

namespace rivulet::sync {

struct MemoryNetwork::State {
  std::mutex mutex;
  Link link;
  TransportConfig config;
  Loss loss;
  std::shared_ptr<ShareCheck> gathers;  ///< null: views use only messages
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
