#pragma once
#include <memory>

#include "sync/collective/state_exchange.h"
#include "sync/round/session.h"
#include "sync/transport/transport.h"

namespace rivulet::runtime {

/// The objects that belong to one membership view. Destroyed at the first error and replaced by the next
/// view. Consumer, row buffer, state, HTTP server and process outlive it.
struct View {
  View() = default;
  ~View() {
    if (transport) transport->close();  // before the session frees posted buffers
  }
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  sync::ViewSpec spec;
  std::unique_ptr<sync::Transport> transport;
  std::unique_ptr<sync::StateExchange> exchange;  ///< once connected
  bool settling = false;                          ///< this device holds the target
  std::unique_ptr<sync::SyncSession> session;     ///< once connected; destroyed before the transport
};

}  // namespace rivulet::runtime
