#pragma once
#include <memory>

#include "sync/collective/state_exchange.h"
#include "sync/round/session.h"
#include "sync/transport/transport.h"

namespace rivulet::runtime {

/// Everything that belongs to one membership view and nothing else: destroyed at the first error, replaced by
/// the next one. Consumer, slab, state, HTTP and process live on.
struct View {
  View() = default;
  ~View() {
    if (transport) transport->close();  // before the session frees what was posted
  }
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  sync::ViewSpec spec;
  std::unique_ptr<sync::Transport> transport;
  std::unique_ptr<sync::StateExchange> exchange;  ///< once the mesh stands
  bool settling = false;                          ///< this device holds the target
  std::unique_ptr<sync::SyncSession> session;     ///< once the mesh stands; destroyed before the transport
};

}  // namespace rivulet::runtime
