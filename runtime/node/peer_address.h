#pragma once
#include <string>

#include "runtime/config/config.h"
#include "sync/collective/gloo_transport.h"

/// Where the peers of a device reach it.
namespace rivulet::runtime {

sync::GlooConfig gloo_config(const Config& config);

/// Why peers on other machines cannot dial what sync.bind is here: it is a loopback address, and the brokers
/// are elsewhere. Empty: they can, or sync.advertise names another address, or nobody else is awaited. May
/// wait for name servers.
std::string unreachable_for_peers(const Config& config);

}  // namespace rivulet::runtime
