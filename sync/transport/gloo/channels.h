#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "sync/transport/gloo/group.h"
#include "sync/transport/gloo/waiter.h"

namespace rivulet::sync::gloo_door {

/// Lanes of a round: train comes and waits for what it has posted there.
constexpr bool is_asked_for(Lane lane) {
  return lane == Lane::facts || lane == Lane::section || lane == Lane::payload || lane == Lane::sum ||
         lane == Lane::phase || lane == Lane::speculative;
}

/// The connected group and who waits for what was posted to it: one waiter for all sends, one per peer and
/// lane for receives. train posts and waits; comm connects, looks, hands out, and takes down, after which
/// nothing touches what was posted any more.
class Channels {
 public:
  explicit Channels(ChunkSink& sink) : sink_(sink) {}

  // comm thread
  void connected(std::unique_ptr<Group> group);
  /// While it stands.
  [[nodiscard]] Pulse pulse(std::uint32_t peer) { return group_->pulse(peer); }
  void say(const Obituary& last_words) {
    if (group_ != nullptr) group_->say(last_words);
  }
  void hand_out();
  void tick();
  void take_down();

  // train thread
  /// In chunks of `chunk` bytes. Errors: those of Group; nothing is posted, and none returned, after
  /// take_down().
  Status post(Operation& op, std::span<std::byte> bytes, std::size_t chunk);
  /// As Waiter::wait_for().
  bool wait_for(const Operation& op);

 private:
  Waiter& waiter_for(const Operation& op);
  std::shared_ptr<Waiter> waiter_of(const Operation& op);

  ChunkSink& sink_;
  std::mutex mutex_;  ///< train posts; comm takes down
  std::unique_ptr<Group> group_;
  std::map<std::uint32_t, std::shared_ptr<Waiter>> waiters_;  ///< by waiter_key()
};

}  // namespace rivulet::sync::gloo_door
