#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "core/clock.h"
#include "sync/transport/transport.h"

namespace rivulet::sync {

/// The transport between in-process ranks: delivery at send time + latency + bytes / bandwidth, with a script
/// of losses. One per group of nodes; thread-safe, so that it also serves real threads under a sanitizer.
class MemoryNetwork {
 public:
  struct State;  ///< private to memory_*.cpp
  struct Link {
    Duration latency{};
    double bytes_per_second = 0;  ///< 0 = infinite; one queue per direction and pair
    /// Of a device's own link: what passes at once after a rest, as through a token bucket.
    std::size_t burst_bytes = 0;
  };
  /// Called for each message, inside the network's lock: true = it and all behind it on its lane are lost for
  /// ever (the receiver runs into its deadline).
  using Loss = std::function<bool(std::uint32_t from, std::uint32_t to, Lane lane, std::uint64_t index)>;

  MemoryNetwork();
  MemoryNetwork(Link link, TransportConfig config);
  ~MemoryNetwork();
  void set_link(Link link);
  /// What one device sends goes through this one after the other, to whichever peer, and what it receives
  /// likewise; besides the link between the two. Its latency is added. Later calls replace it.
  void set_own_link(std::string_view device_id, Link link);
  void set_loss(Loss loss);
  /// Views that are formed from now on gather (gathering.h): ranks that share a thread and one link for all
  /// pairs hold each contribution once. There is then neither loss nor a link of a device's own.
  /// `check_every`: see ShareCheck.
  void gather(std::uint32_t check_every);
  /// The device dies as by kill -9: its peers learn of it as they would from a closed socket.
  void kill(std::string_view device_id);
  /// A Connect for one node: `clock` is the clock of the thread that will own the transport.
  Connect connect_for(const Clock& clock);

 private:
  std::shared_ptr<State> state_;  // endpoints of a view outlive neither side alone; see memory_transport.cpp
};

}  // namespace rivulet::sync
