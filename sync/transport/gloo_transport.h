#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sync/transport/transport.h"

namespace rivulet::sync {

struct GlooConfig {
  TransportConfig transport;
  /// Interface name or local address, never a wildcard. "auto": the local address of the route to `towards`.
  std::string bind = "127.0.0.1";
  /// Hosts that every device reaches, by name or address; empty if not known yet. Called on a separate
  /// thread, and again if none of them has a route. May block for some seconds.
  std::function<std::vector<std::string>()> towards;
  std::string advertise;  ///< address that peers dial, if it differs (NAT); empty = bind
  int port = 0;           ///< port that peers dial; 0: a free port in each view
  /// Deadline for a new address or connection while a view connects: members connect one after another, so
  /// each of them adds to it.
  Duration connect_deadline = std::chrono::seconds(5);
  Duration connect_deadline_per_member = std::chrono::milliseconds(250);
  /// For the watchdog: the comm thread writes the clock's nanoseconds here at least every 20 ms, and 0 while
  /// no group is connected. Must outlive the transports.
  std::atomic<std::int64_t>* comm_beat_ns = nullptr;
  /// Called by the comm thread at each beat. Tests stall it here.
  std::function<void()> comm_tick;
};

/// The deadline for a view of this many members.
inline Duration connect_deadline_of(const GlooConfig& config, std::uint32_t members) {
  return config.connect_deadline + config.connect_deadline_per_member * members;
}

/// Connects through the Gloo inside LibTorch (c10d::ProcessGroupGloo). A comm thread waits and is woken every
/// 20 ms by abort(); sentinels detect dead peers; the progress deadline uses our clock. Errors of the
/// factory: invalid_config (bind is a wildcard, or not a local interface or address), unavailable (built
/// without LibTorch; the port is taken). With "auto" a view uses the address found so far: unavailable if
/// there is none.
Result<Connect> make_gloo_connect(GlooConfig, const Clock&);

/// Returns the numeric address that `bind` currently stands for. Errors: as above; unavailable ("auto", and
/// no route to any of `towards` within 5 s).
Result<std::string> local_peer_address(const GlooConfig&);

}  // namespace rivulet::sync
