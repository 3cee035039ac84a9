#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sync/transport/gloo/group.h"
#include "sync/transport/gloo/links.h"
#include "sync/transport/gloo/peer_door.h"
#include "sync/transport/gloo/rank_address.h"

namespace rivulet::sync::gloo_door {

/// Exchanges addresses while a group connects, by polling the view's address book. Remembers enough to name
/// the missing ranks. Used by one thread.
class Rendezvous {
 public:
  /// All arguments must outlive it.
  Rendezvous(const ConnectRequest& request, PeerDoor& door, Links& links);

  /// Keys end with the rank of their owner. Both throw NotConnected.
  void publish(const std::string& key, const Blob& value);
  Blob look_up(const std::string& key);
  bool has(const std::string& key);

  /// Returns the failure with a text for users; `message` is Gloo's error text.
  [[nodiscard]] ConnectFailure explain(const std::string& message) const;

 private:
  Blob wait_for_key(const std::string& key);
  ConnectFailure missing_keys(const std::string& key);
  [[nodiscard]] std::string name_of(std::uint32_t rank) const;

  const ConnectRequest& request_;
  PeerDoor& door_;
  Links& links_;
  Sealed mine_;
  std::vector<std::optional<sockaddr_storage>> addresses_;  ///< addresses found, by rank
};

}  // namespace rivulet::sync::gloo_door
