#pragma once
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/result.h"
#include "core/time.h"

namespace rivulet::sync::gloo_door {

/// Finds the local address from which this machine reaches some hosts. Separate threads determine the hosts
/// and resolve their names, because name servers may be slow. Prefers an address that other machines can
/// reach over a loopback address. Owner: one thread.
class AddressTowards {
 public:
  /// Hosts by name or numeric address; empty: not known yet. May block.
  using Hosts = std::function<std::vector<std::string>()>;
  explicit AddressTowards(Hosts hosts);
  ~AddressTowards();  ///< waits for `hosts`, not for name servers
  AddressTowards(const AddressTowards&) = delete;
  AddressTowards& operator=(const AddressTowards&) = delete;

  /// Starts to look up the hosts, unless a lookup is running. Keeps addresses that have a route.
  void resolve();
  /// Returns the numeric address, waiting up to `patience`. Errors: unavailable (no answer yet, or no
  /// host has a route; the next call looks up again).
  Result<std::string> find(Duration patience);

 private:
  struct Answers;
  const Hosts hosts_;
  std::shared_ptr<Answers> answers_;  ///< shared with a detached thread
  std::thread question_;
};

}  // namespace rivulet::sync::gloo_door
