#pragma once
#include <string>

#include "runtime/config/config.h"
#include "runtime/process/log.h"
#include "sync/transport/gloo_transport.h"

/// Where the peers of a device reach it.
namespace rivulet::runtime {

sync::GlooConfig gloo_config(const Config& config);

/// Why peers on other machines cannot dial what sync.bind is here: it is a loopback address, and the brokers
/// are elsewhere. Empty: they can, or sync.advertise names another address, or nobody else is awaited. May
/// wait for name servers.
std::string unreachable_for_peers(const Config& config);

/// Writes into the log that rows go to brokers unencrypted, and that peers cannot reach this device, where
/// that is so.
void warn_of_networks(const Config& config, Logger& log);

}  // namespace rivulet::runtime
