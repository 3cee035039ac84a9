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

/// Times of bytes on their way.
struct Flight {
  TimePoint sent_at{};                      ///< when the wire began with them
  TimePoint left_at{};                      ///< when the last was on the wire
  TimePoint arrives_at = TimePoint::max();  ///< when the last is there; max: not sent yet
  Duration chunk{};                         ///< a chunk of them takes this long
};

/// One message on what its receiver shares between all who send to it.
struct Landing {
  TimePoint reached_at{};  ///< when its last byte would be there if nobody else sent
  Duration takes{};        ///< of the link's time
  TimePoint ends_at{};
  TimePoint free_at{};  ///< when the link has made up for it; before ends_at if it passed in a burst
  TimePoint told_at{};  ///< what the receiver knows of ends_at
};

/// One send on its way.
struct Message : Flight {
  TimePoint taken_at{};  ///< when the sender was rid of them; on a link of its own before left_at
  bool lost = false;     ///< it and all behind it on its lane never arrive
  std::vector<std::byte> bytes;
  std::shared_ptr<Landing> landing;  ///< null: the receiver shares nothing
  [[nodiscard]] TimePoint here_at() const { return landing ? landing->ends_at : arrives_at; }
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
  /// Those that reach the link before go before; those that reach it later, and were announced already, are
  /// put off.
  void land(const std::shared_ptr<Landing>& landing);

  MemoryNetwork::Link link;
  TimePoint up_free_at{};
  std::uint32_t up_to = 0;                         ///< rank that it sends to until then
  TimePoint down_free_at{};                        ///< of those that have landed
  std::vector<std::shared_ptr<Landing>> landings;  ///< of messages on their way, in the order of reached_at
};

struct Member {
  std::string id;
  OwnLink* own = nullptr;        ///< of the network; null: none
  Endpoint* endpoint = nullptr;  ///< while it is alive
  bool joined = false;
  TimePoint joined_at{};
  TimePoint last_told = TimePoint::min();  ///< when the others have what it contributed last
  std::optional<TimePoint> gone_at;
  std::optional<std::uint32_t> lost;  ///< whom it had lost when it left: its last words
  ErrorCode lost_how = ErrorCode::peer_lost;
};

/// What every rank contributes, once.
struct Exchange {
  Exchange(std::size_t world, std::shared_ptr<ShareCheck> check);
  void add(std::uint32_t rank, const Flight& flight);
  [[nodiscard]] bool complete() const { return tellers > 0 && so_far == tellers; }

  std::shared_ptr<Gathered> gathered;
  std::vector<Flight> told;     ///< by rank
  std::vector<bool> watching;   ///< by rank: has not entered and wants to know of the first
  std::uint32_t tellers = 0;    ///< that there will be; 0: nobody has entered
  std::uint32_t so_far = 0;     ///< that there are
  std::size_t bytes = 0;        ///< of all, headers included
  std::size_t left = 0;         ///< ranks that have taken it
  std::uint32_t last_rank = 0;  ///< whose bytes arrive last
  TimePoint first_arrival = TimePoint::max();
  TimePoint last_arrival = TimePoint::min();
  TimePoint last_but_one = TimePoint::min();  ///< of all but last_rank
};

/// Those of a lane that somebody has not left yet.
struct ExchangesOfLane {
  std::uint64_t first = 0;  ///< index of the oldest
  std::deque<Exchange> open;
};

/// Everybody who connects with one token.
struct View {
  Exchange& exchange(Lane lane, std::uint64_t index);
  void leave_exchange(Lane lane, std::uint64_t index);

  std::unique_ptr<SharedWork> work;  ///< null: this view has only messages
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
  Message message;  ///< of a send: its times, without the bytes
};

/// An exchange that one rank is in.
struct Entered {
  std::uint64_t ticket = 0;
  Lane lane = Lane::facts;
  std::uint64_t index = 0;
  TimePoint at{};
  bool patient = false;
  bool done = false;
  TimePoint left_at = TimePoint::min();  ///< own bytes
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

  Ticket tell(Telling telling) override;
  std::shared_ptr<Gathered> take(Ticket ticket) override;
  bool anything_told(Lane lane) override;
  std::span<const std::byte> heard(Lane lane, std::uint32_t rank) override;
  SharedWork& work() override;

  /// For the network, under its mutex.
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
  void settle(TimePoint now, std::uint64_t ticket);
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
  void say(Exchange& exchange, Entered& entered, Telling telling);
  void hear(const Exchange& exchange, const Entered& theirs, const Flight& flight);
  [[nodiscard]] TimePoint ready_at(const Entered& entered, const Exchange& exchange) const;
  void settle_gathered(TimePoint now, Entered& entered);
  [[nodiscard]] bool heard_bye_of(std::uint32_t peer, TimePoint now) const;
  [[nodiscard]] bool still_to_hear(std::uint32_t peer, TimePoint now) const;
  std::optional<std::uint32_t> latest_told(TimePoint now);

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
  struct {
    std::size_t waiting = 0;  ///< operations that count
    TimePoint last_progress{};
    TimePoint alarm_at = TimePoint::min();  ///< when the wake was last asked to ring
  } deadline_;
  std::vector<Entered> entered_;  ///< exchanges not taken yet
  TimePoint wires_free_at_{};     ///< when what this rank has contributed has left
  std::array<std::uint64_t, lanes_end> next_exchange_{};
  std::set<std::uint32_t> said_shutdown_;
  std::set<std::uint32_t> departed_;
};

}  // namespace rivulet::sync::memory

namespace rivulet::sync {

struct MemoryNetwork::State {
  std::mutex mutex;
  Link link;
  TransportConfig config;
  Loss loss;
  std::shared_ptr<ShareCheck> gathers;  ///< null: there are only messages
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
