#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "core/clock.h"
#include "sync/transport/transport.h"

namespace rivulet::sync {

/// The transport between ranks of one process. Delivers at send time + latency + bytes / bandwidth, with
/// scripted losses. One per group of nodes. Thread-safe, so that sanitizers can run it with real threads.
class MemoryNetwork {
 public:
  struct State;  ///< private to memory_*.cpp
  struct Link {
    Duration latency{};
    double bytes_per_second = 0;  ///< 0 = unlimited; one queue per direction and pair
    /// For a device's own link: burst in bytes that passes without delay after a pause, as with a token
    /// bucket.
    std::size_t burst_bytes = 0;
  };
  /// Called for each message, under the network's lock. True: this message and all later ones of its lane are
  /// lost (the receiver's deadline passes).
  using Loss = std::function<bool(std::uint32_t from, std::uint32_t to, Lane lane, std::uint64_t index)>;

  MemoryNetwork();
  MemoryNetwork(Link link, TransportConfig config);
  ~MemoryNetwork();
  void set_link(Link link);
  /// Gives a device one link for all peers, in addition to the links between pairs. Its messages pass this
  /// link one at a time, in each direction. Its latency is added. A later call replaces it.
  void set_own_link(std::string_view device_id, Link link);
  void set_loss(Loss loss);
  /// Views formed from now on gather (gathering.h): ranks that share a thread store each contribution once,
  /// and all pairs have the same link. Excludes losses and own links. `check_every`: see ShareCheck.
  void gather(std::uint32_t check_every);
  /// Kills the device as kill -9 would: its peers see a closed socket.
  void kill(std::string_view device_id);
  /// A killed device has a new process: its peers wait for it to connect.
  void restart(std::string_view device_id);
  /// Returns the Connect of one node. `clock`: the clock of the thread that will own the transport.
  Connect connect_for(const Clock& clock);

 private:
  std::shared_ptr<State> state_;  // shared with the endpoints, which may outlive the network
};

}  // namespace rivulet::sync
