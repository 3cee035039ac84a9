#include "sync/transport/gloo/channels.h"

#include <algorithm>

namespace rivulet::sync::gloo_door {
namespace {

constexpr std::uint32_t channel_of(const Operation& op) {
  return op.peer * 16 + static_cast<std::uint32_t>(op.lane);
}

std::uint32_t waiter_key(const Operation& op) {
  constexpr std::uint32_t all_sends = 0xffffffff;
  return op.sending ? all_sends : channel_of(op);
}

/// Lives as long as the group.
class LaneInbox final : public Inbox {
 public:
  LaneInbox(const Group& group, const Operation& op)
      : group_(group), peer_(op.peer), tag_(static_cast<int>(op.lane)) {}
  [[nodiscard]] std::uint64_t arrived() const override { return group_.arrived(peer_, tag_); }
  [[nodiscard]] std::optional<std::string> broken() const override { return group_.broken(peer_); }

 private:
  const Group& group_;
  const std::uint32_t peer_;
  const int tag_;
};

}  // namespace

void Channels::connected(std::unique_ptr<Group> group) {
  const std::lock_guard lock(mutex_);
  group_ = std::move(group);
}

void Channels::hand_out() {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, waiter] : waiters_) waiter->hand_out();
}

void Channels::tick() {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, waiter] : waiters_) waiter->tick();
}

void Channels::take_down() {
  const std::lock_guard lock(mutex_);
  for (auto& [key, waiter] : waiters_) waiter->stop();
  waiters_.clear();
  group_.reset();
}

Status Channels::post(Operation& op, std::span<std::byte> bytes, std::size_t chunk) {
  const int tag = static_cast<int>(op.lane);
  const std::lock_guard lock(mutex_);
  while (!bytes.empty() && group_ != nullptr) {
    const auto part = bytes.first(std::min(bytes.size(), chunk));
    auto work = op.sending ? group_->send(op.peer, tag, part) : group_->receive(op.peer, tag, part);
    if (!work) return work.error();
    waiter_for(op).add(channel_of(op), {std::move(work).value(), &op, part.size()}, !is_requested(op.lane));
    bytes = bytes.subspan(part.size());
  }
  return ok();
}

Waiter& Channels::waiter_for(const Operation& op) {
  auto& waiter = waiters_[waiter_key(op)];
  if (waiter == nullptr)
    waiter = op.sending ? std::make_shared<Waiter>(sink_, "comm-send")
                        : std::make_shared<Waiter>(sink_, std::make_unique<LaneInbox>(*group_, op));
  return *waiter;
}

/// Returns a shared pointer, because comm may take the group down while a caller waits.
std::shared_ptr<Waiter> Channels::waiter_of(const Operation& op) {
  const std::lock_guard lock(mutex_);
  const auto it = waiters_.find(waiter_key(op));
  return it == waiters_.end() ? nullptr : it->second;
}

bool Channels::wait_for(const Operation& op) {
  const auto waiter = waiter_of(op);
  return waiter != nullptr && waiter->wait_for(channel_of(op), op);
}

}  // namespace rivulet::sync::gloo_door
