#include "sync/collective/gloo_transport.h"

#include <pthread.h>

#include <array>
#include <csignal>
#include <map>
#include <unordered_map>

#include "sync/collective/gloo/bind_address.h"
#include "sync/collective/gloo/group.h"
#include "sync/collective/gloo/quiet_stdout.h"
#include "sync/collective/gloo/waiter.h"

// Threads of one view:
//   train    posts sends and receives, reads atomics
//   comm     connects; then, every 20 ms or when a chunk broke, feels every peer's pulse and looks at the
//   progress
//            deadline; on the first failure tells the others, takes everything down, then lets the owner see
//            it
//   waiters  one for all sends, one per peer and lane for receives, made when first used: lanes stay
//   independent, and
//            an open receive for the next round holds up nobody
namespace rivulet::sync {
namespace gloo_door {
namespace {

constexpr auto tick = std::chrono::milliseconds(20);
/// A broken connection is believed this much later: what had arrived before it broke is handed out first.
constexpr auto settle = std::chrono::milliseconds(5);
/// At most this long when the sentinel, on its own connection, still waits: its peer's last words may be on
/// their way. Or when the peer has said goodbye and our waiters are slow to see that all has come.
constexpr auto settle_longest = std::chrono::milliseconds(400);

/// What the threads know of one peer.
struct Peer {
  std::atomic<std::uint32_t> waiting{0};  ///< operations with it that count for the deadline
  std::atomic<bool> said_bye{false};
  std::atomic<bool> broken{false};  ///< a waiter or a post ran into its closed connection
  // comm thread
  std::string how;
  std::optional<TimePoint> suspected_at;
  bool departed = false;
};

enum class Stage : std::uint8_t { connecting, standing, failed };

class GlooTransport final : public Transport, public ChunkSink {
 public:
  GlooTransport(const GlooConfig& config, const Clock& clock, ConnectRequest request, Wake& wake);
  ~GlooTransport() override { close(); }
  GlooTransport(const GlooTransport&) = delete;
  GlooTransport& operator=(const GlooTransport&) = delete;

  std::uint32_t rank() const noexcept override { return view_.rank; }
  std::uint32_t world() const noexcept override { return view_.world(); }
  Progress connected() override;
  Ticket send(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes) override;
  Ticket receive(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) override;
  Ticket receive_ahead(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) override;
  void promote(Ticket ticket) override;
  Progress poll(Ticket ticket) override;
  bool healthy() override { return stage_.load(std::memory_order_acquire) != Stage::failed; }
  const Error& error() const override { return error_; }
  int lost_rank() const noexcept override { return lost_rank_; }
  TransportCounters counters() const noexcept override { return {bytes_sent_, bytes_received_}; }
  void close() noexcept override;

 private:
  // train thread
  Ticket post(bool sending, std::uint32_t peer, Lane lane, std::span<std::byte> bytes, bool ahead);
  Status post_chunk(Operation& op, std::span<std::byte> bytes);
  Waiter& waiter_for(const Operation& op);
  void count(Operation& op);
  void forget_finished();
  // waiters' threads
  void chunk_done(Operation& op, std::size_t bytes) override;
  void chunk_broken(const Operation& op, const std::string& why) override;
  // comm thread
  void run();
  bool sleep_until_tick();
  void look();
  void look_at_peer(std::uint32_t peer);
  void look_at_deadline();
  void fail(Error error, int rank);
  std::optional<Waiter::Oldest> oldest_waiting();
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
  std::atomic<std::uint64_t> bytes_sent_{0};
  std::atomic<std::uint64_t> bytes_received_{0};

  std::mutex post_mutex_;  ///< train posts; comm takes down
  std::unique_ptr<Group> group_;
  std::map<std::uint32_t, std::unique_ptr<Waiter>> waiters_;
  std::mutex alarm_mutex_;
  std::condition_variable alarm_changed_;
  bool alarm_ = false;
  bool stop_ = false;
  std::map<std::uint32_t, std::string> breaks_;  ///< under alarm_mutex_: first account by peer

  // comm thread until stage_ is failed
  Error error_;
  int lost_rank_ = -1;
  bool suspects_ = false;

  std::thread comm_;
};

constexpr std::uint32_t channel_of(std::uint32_t peer, Lane lane) {
  return peer * 16 + static_cast<std::uint32_t>(lane);
}
constexpr std::uint32_t all_sends = 0xffffffff;

GlooTransport::GlooTransport(const GlooConfig& config, const Clock& clock, ConnectRequest request, Wake& wake)
    : config_(config),
      clock_(clock),
      view_(request.view),
      wake_(wake),
      request_(std::move(request)),
      peers_(view_.world()) {
  request_.cancel = &cancel_;
  comm_ = std::thread([this] { run(); });
  pthread_setname_np(comm_.native_handle(), "comm");
}

void GlooTransport::close() noexcept {
  cancel_.set();
  {
    const std::lock_guard lock(alarm_mutex_);
    stop_ = true;
    alarm_changed_.notify_one();
  }
  if (comm_.joinable()) comm_.join();
}

// ---- train thread
// -------------------------------------------------------------------------------------------------

Progress GlooTransport::connected() {
  switch (stage_.load(std::memory_order_acquire)) {
    case Stage::connecting: return Progress::pending;
    case Stage::standing: return Progress::done;
    case Stage::failed: break;
  }
  return Progress::failed;
}

Ticket GlooTransport::send(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes) {
  // Gloo takes what it sends as mutable too; it only reads it.
  return post(true, peer, lane, {const_cast<std::byte*>(bytes.data()), bytes.size()}, false);
}
Ticket GlooTransport::receive(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) {
  return post(false, peer, lane, bytes, false);
}
Ticket GlooTransport::receive_ahead(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) {
  return post(false, peer, lane, bytes, true);
}

Ticket GlooTransport::post(bool sending, std::uint32_t peer, Lane lane, std::span<std::byte> bytes,
                           bool ahead) {
  RIVULET_CHECK(peer < world() && peer != rank(), "a message needs another rank");
  RIVULET_CHECK(stage_ != Stage::connecting, "posted before connected() was done");
  const Ticket ticket{++last_ticket_};
  if (bytes.empty()) return ticket;  // Gloo never sees it; both sides know that nothing is coming
  forget_finished();
  auto& op = *operations_.emplace(ticket.id, std::make_unique<Operation>()).first->second;
  op.id = ticket.id;
  op.peer = peer;
  op.lane = lane;
  op.sending = sending;
  op.chunks_left = static_cast<std::uint32_t>((bytes.size() + config_.transport.chunk_bytes - 1) /
                                              config_.transport.chunk_bytes);
  op.phase = Operation::ahead;
  if (!ahead) count(op);
  const std::lock_guard lock(post_mutex_);
  while (!bytes.empty() && group_ != nullptr) {
    const std::size_t n = std::min(bytes.size(), config_.transport.chunk_bytes);
    if (auto posted = post_chunk(op, bytes.first(n)); !posted) {
      chunk_broken(op, posted.error().message);
      break;
    }
    bytes = bytes.subspan(n);
  }
  return ticket;
}

Status GlooTransport::post_chunk(Operation& op, std::span<std::byte> bytes) {
  const int tag = static_cast<int>(op.lane);
  auto work = op.sending ? group_->send(op.peer, tag, bytes) : group_->receive(op.peer, tag, bytes);
  if (!work) return work.error();
  waiter_for(op).add(channel_of(op.peer, op.lane), {std::move(work).value(), &op, bytes.size()});
  return ok();
}

Waiter& GlooTransport::waiter_for(const Operation& op) {
  const std::uint32_t key = op.sending ? all_sends : channel_of(op.peer, op.lane);
  auto& waiter = waiters_[key];
  if (waiter == nullptr) {
    const std::string name =
        op.sending ? "comm-send"
                   : "comm-" + std::to_string(op.peer) + "-" + std::to_string(static_cast<int>(op.lane));
    waiter = std::make_unique<Waiter>(*this, name);
  }
  return *waiter;
}

/// From here on the operation counts. The deadline runs from the moment the first one does.
void GlooTransport::count(Operation& op) {
  std::uint8_t before = Operation::ahead;
  if (waiting_ == 0) last_progress_ns_ = clock_.now().time_since_epoch().count();
  ++waiting_;
  ++peers_[op.peer].waiting;
  if (op.phase.compare_exchange_strong(before, Operation::counted)) return;
  --peers_[op.peer].waiting;
  --waiting_;
}

void GlooTransport::promote(Ticket ticket) {
  const auto it = operations_.find(ticket.id);
  if (it != operations_.end() && it->second->phase == Operation::ahead) count(*it->second);
}

Progress GlooTransport::poll(Ticket ticket) {
  RIVULET_CHECK(ticket.id != 0 && ticket.id <= last_ticket_, "a ticket of another transport");
  const Stage stage = stage_.load(std::memory_order_acquire);
  const auto it = operations_.find(ticket.id);
  if (it == operations_.end()) return Progress::done;
  if (it->second->done.load(std::memory_order_acquire)) {
    operations_.erase(it);
    return Progress::done;
  }
  return stage == Stage::failed ? Progress::failed : Progress::pending;
}

/// Owners may never ask for a ticket again; finished ones must not pile up.
void GlooTransport::forget_finished() {
  if (operations_.size() < 256 || (operations_.size() & 63) != 0) return;
  std::erase_if(operations_,
                [](const auto& entry) { return entry.second->done.load(std::memory_order_acquire); });
}

// ---- waiters' threads
// ---------------------------------------------------------------------------------------------

void GlooTransport::chunk_done(Operation& op, std::size_t bytes) {
  (op.sending ? bytes_sent_ : bytes_received_) += bytes;
  last_progress_ns_ = clock_.now().time_since_epoch().count();
  if (op.chunks_left.fetch_sub(1) != 1) return;
  if (op.lane == Lane::bye && !op.sending) peers_[op.peer].said_bye = true;
  if (op.phase.exchange(Operation::over) == Operation::counted) {
    --peers_[op.peer].waiting;
    --waiting_;
  }
  op.done.store(true, std::memory_order_release);
  wake_.notify();
}

void GlooTransport::chunk_broken(const Operation& op, const std::string& why) {
  const std::lock_guard lock(alarm_mutex_);
  breaks_.emplace(op.peer, why);
  alarm_ = true;
  alarm_changed_.notify_one();
}

// ---- comm thread
// --------------------------------------------------------------------------------------------------

void GlooTransport::run() {
  ConnectFailure failure;
  auto group = connect_group(request_, failure);
  if (group == nullptr) {
    fail(failure.error, failure.rank);
    return;
  }
  {
    const std::lock_guard lock(post_mutex_);
    group_ = std::move(group);
  }
  stage_.store(Stage::standing, std::memory_order_release);
  wake_.notify();
  while (stage_ == Stage::standing && sleep_until_tick()) look();
  if (stage_ == Stage::standing) {
    take_down();
    error_ = {ErrorCode::cancelled, "this device closed the view"};
    stage_.store(Stage::failed, std::memory_order_release);
  }
  if (config_.comm_beat_ns != nullptr) *config_.comm_beat_ns = 0;
}

/// False: the owner wants it to end.
bool GlooTransport::sleep_until_tick() {
  if (config_.comm_beat_ns != nullptr) *config_.comm_beat_ns = clock_.now().time_since_epoch().count();
  if (config_.comm_tick) config_.comm_tick();
  std::unique_lock lock(alarm_mutex_);
  alarm_changed_.wait_for(lock, suspects_ ? settle : tick, [this] { return stop_ || alarm_; });
  alarm_ = false;
  for (auto& [peer, why] : breaks_) {
    peers_[peer].broken = true;
    peers_[peer].how = why;
  }
  breaks_.clear();
  return !stop_;
}

void GlooTransport::look() {
  suspects_ = false;
  for (std::uint32_t peer = 0; peer < world() && stage_ == Stage::standing; ++peer) {
    if (peer != rank() && !peers_[peer].departed) look_at_peer(peer);
  }
  if (stage_ == Stage::standing) look_at_deadline();
  if (stage_ != Stage::standing) return;
  const std::lock_guard lock(post_mutex_);
  if (const auto it = waiters_.find(all_sends); it != waiters_.end()) it->second->look_elsewhere();
}

void GlooTransport::look_at_peer(std::uint32_t index) {
  Peer& peer = peers_[index];
  const Pulse pulse = group_->pulse(index);
  if (pulse.told && pulse.told->rank == rank()) {
    return fail({ErrorCode::peer_lost, rank_name(view_, index) + " gave this device up as lost"},
                static_cast<int>(index));
  }
  if (pulse.told) {
    return fail(
        {pulse.told->code, rank_name(view_, pulse.told->rank) + " was lost, says " + rank_name(view_, index)},
        static_cast<int>(pulse.told->rank));
  }
  if (!pulse.broken && !peer.broken) return;
  if (peer.how.empty()) peer.how = pulse.why;
  const TimePoint now = clock_.now();
  if (!peer.suspected_at) peer.suspected_at = now;
  const Duration age = now - *peer.suspected_at;
  const bool unclear = !pulse.broken || (peer.said_bye && peer.waiting > 0);
  if (age < (unclear ? settle_longest : settle)) {
    suspects_ = true;
    return;
  }
  if (peer.said_bye && peer.waiting == 0) {
    peer.departed = true;
    return;
  }
  fail({ErrorCode::peer_lost, rank_name(view_, index) + " is gone, its connection broke: " + peer.how},
       static_cast<int>(index));
}

void GlooTransport::look_at_deadline() {
  const Duration deadline = config_.transport.progress_deadline;
  if (waiting_ == 0 || silence() < deadline) return;
  const auto oldest = oldest_waiting();
  if (!oldest) return;
  const std::string seconds = std::to_string(to_seconds(deadline));
  fail({ErrorCode::timed_out, "no byte for " + seconds.substr(0, seconds.find('.') + 2) +
                                  " s while waiting for " + rank_name(view_, oldest->peer)},
       static_cast<int>(oldest->peer));
}

std::optional<Waiter::Oldest> GlooTransport::oldest_waiting() {
  const std::lock_guard lock(post_mutex_);
  std::optional<Waiter::Oldest> oldest;
  for (const auto& [key, waiter] : waiters_) {
    const auto candidate = waiter->oldest();
    if (candidate && (!oldest || candidate->id < oldest->id)) oldest = candidate;
  }
  return oldest;
}

/// Final. The owner sees it when nothing touches its buffers any more; the others learn it from the last
/// words, or from the closed connection.
void GlooTransport::fail(Error error, int rank) {
  error_ = std::move(error);
  lost_rank_ = rank;
  if (group_ != nullptr && rank >= 0) group_->say({static_cast<std::uint32_t>(rank), error_.code});
  take_down();
  stage_.store(Stage::failed, std::memory_order_release);
  wake_.notify();
}

void GlooTransport::take_down() {
  const std::lock_guard lock(post_mutex_);
  for (auto& [key, waiter] : waiters_) waiter->stop();
  waiters_.clear();
  group_.reset();
}

/// A group of one: nobody to talk to, nothing to wait for.
class LoneTransport final : public Transport {
 public:
  std::uint32_t rank() const noexcept override { return 0; }
  std::uint32_t world() const noexcept override { return 1; }
  Progress connected() override { return Progress::done; }
  Ticket send(std::uint32_t, Lane, std::span<const std::byte>) override { return nobody(); }
  Ticket receive(std::uint32_t, Lane, std::span<std::byte>) override { return nobody(); }
  Ticket receive_ahead(std::uint32_t, Lane, std::span<std::byte>) override { return nobody(); }
  void promote(Ticket) override {}
  Progress poll(Ticket) override { return Progress::done; }
  bool healthy() override { return true; }
  const Error& error() const override { return error_; }
  int lost_rank() const noexcept override { return -1; }
  TransportCounters counters() const noexcept override { return {}; }

 private:
  static Ticket nobody() {
    RIVULET_CHECK(false, "a message needs another rank");
    return {};
  }
  Error error_;
};

}  // namespace
}  // namespace gloo_door

Result<Connect> make_gloo_connect(const GlooConfig& config, const Clock& clock) {
  if (auto address = gloo_door::local_address(config.bind); !address) return address.error();
  if (!config.advertise.empty()) {
    if (auto checked = gloo_door::check_advertised(config.advertise); !checked) return checked.error();
  }
  // Gloo writes to sockets without MSG_NOSIGNAL: a peer that died would end this process too.
  std::signal(SIGPIPE, SIG_IGN);
  gloo_door::QuietStdout::install();
  return Connect([config, &clock](const ViewSpec& view, AddressBook& book,
                                  Wake& wake) -> Result<std::unique_ptr<Transport>> {
    RIVULET_CHECK(view.rank < view.world(), "own rank is not in the view");
    if (view.world() == 1) return std::unique_ptr<Transport>(std::make_unique<gloo_door::LoneTransport>());
    // Looked up again for each view: an interface may have got another address.
    auto address = gloo_door::local_address(config.bind);
    if (!address) return address.error();
    gloo_door::ConnectRequest request{
        std::move(address).value(), config.advertise, config.connect_deadline, &clock, view, &book, nullptr};
    return std::unique_ptr<Transport>(
        std::make_unique<gloo_door::GlooTransport>(config, clock, std::move(request), wake));
  });
}

}  // namespace rivulet::sync
