#include "sync/transport/gloo/links.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "sync/transport/gloo/gloo_pair.h"

namespace rivulet::sync::gloo_door {
namespace {

constexpr Duration look_every = std::chrono::milliseconds(2);
/// Limit in deadlines, for a mesh that makes progress but never completes.
constexpr int deadlines_most = 3;

thread_local std::shared_ptr<Links> connecting_here;

}  // namespace

struct Links::Link {
  // constant
  Pair* pair = nullptr;
  std::uint32_t rank = 0;
  // comm thread
  bool attached = false;
  // shared
  std::atomic<std::uint64_t> sends{0};
  std::atomic<std::uint64_t> receives{0};
  std::mutex mutex;
  std::string refused;           ///< reason, under mutex
  std::string broken;            ///< how it ended, under mutex
  const Links* links = nullptr;  ///< while pairs exist
  std::array<std::atomic<std::uint64_t>, lanes_end> arrived{};
  // Gloo's loop thread
  FrameCheck check;
  std::optional<Lane> begun;
};

// Static, because Gloo's functions get only their own object.
struct Links::Known {
  std::mutex mutex;
  std::unordered_map<const Pair*, std::shared_ptr<Link>> pairs;
};

Links::Known& Links::known() {
  static auto* const all = new Known;  // never deleted: Gloo's last thread may end at any time
  return *all;
}

std::shared_ptr<Links::Link> Links::find(const Pair* pair) {
  const std::lock_guard lock(known().mutex);
  const auto it = known().pairs.find(pair);
  return it == known().pairs.end() ? nullptr : it->second;
}

Links::Links(const ConnectRequest& request)
    : request_(request),
      on_arrival_(request.on_arrival),
      view_(request.view),
      dialer_(*request.clock),
      began_(request.clock->now()),
      progress_at_(began_) {}

Links::~Links() = default;

std::shared_ptr<Links> Links::connecting() noexcept {
  return connecting_here;
}
Links::Connecting::Connecting(std::shared_ptr<Links> links) {
  connecting_here = std::move(links);
}
Links::Connecting::~Connecting() {
  connecting_here.reset();
}

// ---- comm thread

/// Gloo makes one mesh per device, each with one pair per peer, by rank.
void Links::expect(Pair* pair) {
  const auto others = view_.world() - 1;
  const auto nth = static_cast<std::uint32_t>(links_.size()) % others;
  auto link = std::make_shared<Link>();
  link->links = this;
  link->pair = pair;
  link->rank = nth < view_.rank ? nth : nth + 1;
  links_.push_back(link);
  const std::lock_guard lock(known().mutex);
  known().pairs[pair] = std::move(link);
}

void Links::dial(const sockaddr_storage& to, std::int64_t number, Dialer::Answered answered) {
  dialer_.dial(to, number, std::move(answered));
}

void Links::progress() {
  progress_at_ = request_.clock->now();
}

void Links::abandon() {
  const std::lock_guard lock(wanted_mutex_);
  wanted_ = false;
}

void Links::give_up(ConnectFailure failure) {
  abandon();
  throw NotConnected(std::move(failure));
}

void Links::step(const std::function<ConnectFailure()>& missing) {
  dialer_.step(look_every);
  look_for_the_broken();
  const TimePoint now = request_.clock->now();
  const Duration deadline = request_.deadline;
  if (now - progress_at_ >= deadline || now - began_ >= deadlines_most * deadline) give_up(missing());
  if (request_.cancel->wait_for(Duration(0)))
    give_up({{ErrorCode::cancelled, "connecting was cancelled"}, -1});
}

void Links::look_for_the_broken() {
  for (const auto& link : links_) {
    const std::lock_guard lock(link->mutex);
    if (link->broken.empty()) continue;
    const std::string what = link->refused.empty() ? " was lost: " : " sent an unexpected message: ";
    give_up({{ErrorCode::peer_lost, rank_name(view_, link->rank) + what + link->broken},
             static_cast<int>(link->rank)});
  }
}

bool Links::all_attached() {
  bool all = true;
  for (const auto& link : links_) {
    if (link->attached) continue;
    link->attached = is_connected(*link->pair);
    if (link->attached) progress();
    all = all && link->attached;
  }
  return all;
}

void Links::wait_until_attached(std::size_t pairs) {
  // The hooks have no effect with a LibTorch whose Gloo does not call its functions through the loader.
  if (links_.size() != pairs)
    give_up({{ErrorCode::unavailable, "the Gloo of this LibTorch bypasses the hooks for connections"}, -1});
  while (!all_attached()) step([this] { return missing_links(); });
}

/// Names all ranks that are not connected.
ConnectFailure Links::missing_links() const {
  std::string names;
  int first = -1;
  for (std::uint32_t rank = 0; rank < view_.world(); ++rank) {
    const auto lacks = [&](const auto& link) { return link->rank == rank && !link->attached; };
    if (std::ranges::none_of(links_, lacks)) continue;
    if (first < 0) first = static_cast<int>(rank);
    names += (names.empty() ? "" : ", ") + rank_name(view_, rank);
  }
  const std::string seconds = std::to_string(to_seconds(request_.clock->now() - began_));
  return {{ErrorCode::timed_out,
           "no connection within " + seconds.substr(0, seconds.find('.') + 2) + " s to " + names},
          first};
}

// ---- train thread

Links::Link& Links::link_to(std::uint32_t rank, int mesh) const {
  const auto others = static_cast<std::size_t>(view_.world() - 1);
  const std::size_t nth = rank < view_.rank ? rank : rank - 1;
  return *links_[static_cast<std::size_t>(mesh) * others + nth];
}

int Links::mesh_from(std::uint32_t rank) const {
  return data_tag(0, rank < view_.rank);
}

void Links::posted(bool sending, std::uint32_t rank, int mesh) {
  Link& link = link_to(rank, mesh);
  ++(sending ? link.sends : link.receives);
}

// ---- any thread

std::optional<std::string> Links::refusal(std::uint32_t rank) const {
  for (const auto& link : links_) {
    if (link->rank != rank) continue;
    const std::lock_guard lock(link->mutex);
    if (!link->refused.empty()) return link->refused;
  }
  return std::nullopt;
}

std::optional<std::string> Links::data_broken(std::uint32_t rank) const {
  Link& link = link_to(rank, mesh_from(rank));
  const std::lock_guard lock(link.mutex);
  return link.broken.empty() ? std::nullopt : std::optional(link.broken);
}

std::uint64_t Links::arrived(std::uint32_t rank, Lane lane) const {
  return link_to(rank, mesh_from(rank)).arrived[static_cast<std::size_t>(lane)];
}

void Links::hand_over(const std::function<void()>& give) {
  const std::lock_guard lock(wanted_mutex_);
  if (wanted_) give();
}

void Links::forget() {
  const std::lock_guard lock(known().mutex);
  for (const auto& link : links_) {
    // Another view may already have a pair at the same address.
    const auto it = known().pairs.find(link->pair);
    if (it != known().pairs.end() && it->second == link) known().pairs.erase(it);
  }
}

// ---- Gloo's loop thread

const char* Links::refuse(const Pair* pair, const Preamble& preamble) {
  const auto link = find(pair);
  if (link == nullptr) return "a message to a view that has ended";
  const bool data = preamble.opcode == Preamble::message && preamble.slot < meshes * lanes_end;
  link->begun = data ? std::optional(static_cast<Lane>(preamble.slot / meshes)) : std::nullopt;
  return link->check.refuse(preamble, {link->sends, link->receives});
}

void Links::ended(const Pair* pair) {
  const auto link = find(pair);
  if (link == nullptr || !link->begun) return;
  const Lane lane = *std::exchange(link->begun, std::nullopt);
  ++link->arrived[static_cast<std::size_t>(lane)];
  if (link->links->on_arrival_) link->links->on_arrival_(lane);
}

void Links::refused(const Pair* pair, const std::string& why) {
  const auto link = find(pair);
  if (link == nullptr) return;
  const std::lock_guard lock(link->mutex);
  if (link->refused.empty()) link->refused = why;
}

void Links::broken(const Pair* pair, const std::string& why) {
  const auto link = find(pair);
  if (link == nullptr) return;
  const std::lock_guard lock(link->mutex);
  if (link->broken.empty()) link->broken = why;
}

}  // namespace rivulet::sync::gloo_door
