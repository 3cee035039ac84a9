#pragma once
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/result.h"
#include "core/time.h"

namespace rivulet::sync::gloo_door {

/// The local address from which this machine reaches some hosts. Which hosts, and where they are, is asked on
/// threads of its own, for name servers answer when they like. An address that others reach comes before a
/// loopback address. Owner: one thread.
class AddressTowards {
 public:
  /// By name or numeric address. May wait; empty: not known now.
  using Hosts = std::function<std::vector<std::string>()>;
  explicit AddressTowards(Hosts hosts);
  ~AddressTowards();  ///< waits for `hosts`, not for name servers
  AddressTowards(const AddressTowards&) = delete;
  AddressTowards& operator=(const AddressTowards&) = delete;

  /// Asks, unless that is under way. What has led somewhere is kept.
  void ask();
  /// The numeric address, within `patience`. Errors: unavailable (no answer yet, or no way to any host: the
  /// next call asks again).
  Result<std::string> find(Duration patience);

 private:
  struct Answers;
  const Hosts hosts_;
  std::shared_ptr<Answers> answers_;  ///< shared with a thread that is left behind
  std::thread question_;
};

}  // namespace rivulet::sync::gloo_door
