#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sync/collective/gloo/group.h"
#include "sync/collective/gloo/peer_door.h"
#include "sync/collective/gloo/rank_address.h"

namespace rivulet::sync::gloo_door {

/// The exchange of addresses while a group connects: the view's address book, looked at until the deadline.
/// Remembers enough to say who was missing. Used by one thread.
class Rendezvous {
 public:
  /// Both must outlive it.
  Rendezvous(const ConnectRequest& request, PeerDoor& door);

  /// False: see failure(). Keys end in the number of the rank they belong to.
  bool publish(const std::string& key, const Blob& value);
  bool look_up(const std::string& key, Blob& value);
  bool has(const std::string& key);
  [[nodiscard]] const std::string& failure() const { return failure_.error.message; }

  /// What went wrong, for people; `message` is the library's own account.
  [[nodiscard]] ConnectFailure explain(const std::string& message) const;

 private:
  bool fail(ErrorCode code, const std::string& message, int rank);
  bool wait_for_key(const std::string& key, Blob& value);
  bool miss(const std::string& key);
  [[nodiscard]] std::string name_of(std::uint32_t rank) const;

  const ConnectRequest& request_;
  PeerDoor& door_;
  TimePoint deadline_;
  Sealed mine_;
  std::vector<std::optional<sockaddr_storage>> addresses_;  ///< by rank, of the peers that were found
  bool failed_ = false;
  ConnectFailure failure_;
};

}  // namespace rivulet::sync::gloo_door
