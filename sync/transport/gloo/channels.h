#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "sync/transport/gloo/group.h"
#include "sync/transport/gloo/waiter.h"

namespace rivulet::sync::gloo_door {

/// Lanes of a round: the train thread waits for the operations that it has posted there.
constexpr bool is_requested(Lane lane) {
  return lane == Lane::facts || lane == Lane::section || lane == Lane::payload || lane == Lane::sum ||
         lane == Lane::phase || lane == Lane::speculative;
}

/// The connected group and the waiters for posted operations: one for all sends, one per peer and lane for
/// receives. The train thread posts and waits. The comm thread connects, checks peers, hands out arrivals and
/// takes the group down; posted buffers are not touched afterwards.
class Channels {
 public:
  explicit Channels(ChunkSink& sink) : sink_(sink) {}

  // comm thread
  void connected(std::unique_ptr<Group> group);
  /// Only while connected.
  [[nodiscard]] Pulse pulse(std::uint32_t peer) { return group_->pulse(peer); }
  void announce(const Obituary& last_words) {
    if (group_ != nullptr) group_->log(last_words);
  }
  void hand_out();
  void tick();
  void take_down();

  // train thread
  /// Posts in chunks of `chunk` bytes. Errors: those of Group. After take_down() it posts nothing and returns
  /// ok.
  Status post(Operation& op, std::span<std::byte> bytes, std::size_t chunk);
  /// As Waiter::wait_for().
  bool wait_for(const Operation& op);

 private:
  Waiter& waiter_for(const Operation& op);
  std::shared_ptr<Waiter> waiter_of(const Operation& op);

  ChunkSink& sink_;
  std::mutex mutex_;  ///< serializes posts of the train thread and take_down() on the comm thread
  std::unique_ptr<Group> group_;
  std::map<std::uint32_t, std::shared_ptr<Waiter>> waiters_;  ///< by waiter_key()
};

}  // namespace rivulet::sync::gloo_door
