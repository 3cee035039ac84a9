#include "sync/transport/gloo/endpoint.h"

namespace rivulet::sync::gloo_door {
namespace {

constexpr auto tick = std::chrono::milliseconds(20);
/// Delay before a broken connection counts as lost, so that messages received before are handed out first.
constexpr auto settle = std::chrono::milliseconds(5);
/// Maximum delay in two cases. First: the sentinel, on a separate connection, is still open, so an obituary
/// may be on its way. Second: the peer may have passed the shutdown barrier, and our waiters have not
/// received all messages yet. On a busy machine we detect at different times that its sentinel and its data
/// connections have closed.
constexpr auto settle_longest = std::chrono::milliseconds(400);

}  // namespace

// ---- comm thread ----

void GlooEndpoint::run() {
  ConnectFailure failure;
  auto group = connect_group(request_, failure);
  if (group == nullptr) {
    fail(failure.error, failure.rank);
    return;
  }
  channels_.connected(std::move(group));
  stage_.store(Stage::attached, std::memory_order_release);
  wake_.notify();
  while (stage_ == Stage::attached && sleep_until_tick()) look();
  if (stage_ == Stage::attached) {
    channels_.take_down();
    error_ = {ErrorCode::cancelled, "this device closed the view"};
    stage_.store(Stage::failed, std::memory_order_release);
  }
  if (config_.comm_beat_ns != nullptr) *config_.comm_beat_ns = 0;
}

/// Returns false if the owner closes the transport.
bool GlooEndpoint::sleep_until_tick() {
  if (config_.comm_beat_ns != nullptr) *config_.comm_beat_ns = clock_.now().time_since_epoch().count();
  if (config_.comm_tick) config_.comm_tick();
  const bool goes_on =
      alarm_.wait(clock_.now() + (suspects_ ? settle : tick), [this] { channels_.hand_out(); });
  for (auto& [peer, why] : alarm_.take_breaks()) {
    peers_[peer].broken = true;
    peers_[peer].how = why;
  }
  return goes_on;
}

void GlooEndpoint::look() {
  suspects_ = false;
  for (std::uint32_t peer = 0; peer < world() && stage_ == Stage::attached; ++peer) {
    if (peer != rank() && !peers_[peer].departed) look_at_peer(peer);
  }
  if (stage_ == Stage::attached) look_at_deadline();
  if (stage_ == Stage::attached) channels_.tick();
}

void GlooEndpoint::look_at_peer(std::uint32_t index) {
  Peer& peer = peers_[index];
  const Pulse pulse = channels_.pulse(index);
  if (pulse.refused)
    return fail(
        {ErrorCode::peer_lost, rank_name(view_, index) + " sent an unexpected message: " + *pulse.refused},
        static_cast<int>(index));
  if (pulse.reported && pulse.reported->rank == rank()) {
    // A rank declared this device lost, while this device waits for a third rank: name that third rank.
    const auto quiet =
        waiting_ > 0 && silence() >= config_.transport.progress_deadline / 2 ? quietest() : std::nullopt;
    if (quiet && *quiet != index) return give_up_on(*quiet);
    return fail({ErrorCode::peer_lost, rank_name(view_, index) + " reported this device as lost"},
                static_cast<int>(index));
  }
  if (pulse.reported) {
    return fail({pulse.reported->code, rank_name(view_, pulse.reported->rank) + " was lost, reported by " +
                                           rank_name(view_, index)},
                static_cast<int>(pulse.reported->rank));
  }
  if (!pulse.broken && !peer.broken) return;
  if (peer.how.empty()) peer.how = pulse.why;
  const TimePoint now = clock_.now();
  if (!peer.suspected_at) peer.suspected_at = now;
  const Duration age = now - *peer.suspected_at;
  const bool draining = peer.announced_shutdown || peer.awaits_shutdown;
  const bool unclear = !pulse.broken || (draining && peer.waiting > 0);
  if (age < (unclear ? settle_longest : settle)) {
    suspects_ = true;
    return;
  }
  if (peer.announced_shutdown && peer.waiting == 0) {
    peer.departed = true;
    return;
  }
  fail(
      {ErrorCode::peer_lost, rank_name(view_, index) + " was lost because its connection broke: " + peer.how},
      static_cast<int>(index));
}

void GlooEndpoint::look_at_deadline() {
  const Duration deadline = config_.transport.progress_deadline;
  if (waiting_ == 0 || silence() < deadline) return;
  if (const auto quiet = quietest()) give_up_on(*quiet);
}

void GlooEndpoint::give_up_on(std::uint32_t peer) {
  const std::string seconds = std::to_string(to_seconds(silence()));
  fail({ErrorCode::timed_out, "no byte received for " + seconds.substr(0, seconds.find('.') + 2) +
                                  " s while waiting for " + rank_name(view_, peer)},
       static_cast<int>(peer));
}

/// Returns the rank with the longest silence, of those that are waited for: the others may be waiting for it,
/// too.
std::optional<std::uint32_t> GlooEndpoint::quietest() {
  std::optional<std::uint32_t> quiet;
  for (std::uint32_t peer = 0; peer < world(); ++peer) {
    if (peers_[peer].waiting == 0) continue;
    if (!quiet || peers_[peer].received_ns < peers_[*quiet].received_ns) quiet = peer;
  }
  return quiet;
}

/// Makes the error final. The owner gets it once no thread accesses its buffers. Peers detect the failure by
/// the obituary or the closed connection.
void GlooEndpoint::fail(Error error, int rank) {
  error_ = std::move(error);
  lost_rank_ = rank;
  if (rank >= 0) channels_.announce({static_cast<std::uint32_t>(rank), error_.code});
  channels_.take_down();
  stage_.store(Stage::failed, std::memory_order_release);
  wake_.notify();
}

}  // namespace rivulet::sync::gloo_door
