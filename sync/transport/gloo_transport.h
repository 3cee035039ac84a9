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
  /// Interface name or local address; never a wildcard. "auto": that of the way to `towards`.
  std::string bind = "127.0.0.1";
  /// Hosts that every device reaches, by name or address; empty: not known now. Asked on a thread of its own,
  /// and again when none of them leads anywhere. May wait for some seconds.
  std::function<std::vector<std::string>()> towards;
  std::string advertise;  ///< address peers should dial, if it differs (NAT); empty = bind
  int port = 0;           ///< where peers dial; 0: another free one in each view
  Duration connect_deadline = std::chrono::seconds(5);
  /// For the watchdog: the comm thread writes the clock's nanoseconds here at least every 20 ms; 0 while no
  /// group stands. Must outlive the transports.
  std::atomic<std::int64_t>* comm_beat_ns = nullptr;
  /// Called by the comm thread at each beat: where tests plant a stall.
  std::function<void()> comm_tick;
};

/// Point-to-point over the Gloo inside LibTorch (c10d::ProcessGroupGloo): a
/// comm thread waits, a timer thread wakes it every 20 ms by abort(), sentinels notice dead peers, our own
/// clock is the progress deadline. Errors of the factory: invalid_config (bind is not a local interface or
/// address; wildcard), unavailable (built without LibTorch; the port is taken). With "auto" a view takes
/// the address that is known by then: unavailable while none is.
Result<Connect> make_gloo_connect(GlooConfig, const Clock&);

/// The numeric address at which `bind` listens now. Errors: as above; unavailable ("auto", and no way to any
/// of `towards` within 5 s).
Result<std::string> local_peer_address(const GlooConfig&);

}  // namespace rivulet::sync
