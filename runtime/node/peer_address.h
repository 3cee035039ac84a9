#pragma once
#include <string>

#include "runtime/config/config.h"
#include "runtime/process/log.h"
#include "sync/transport/gloo_transport.h"

/// Returns the transport's configuration: the address at which peers reach this device.
namespace rivulet::runtime {

sync::GlooConfig gloo_config(const Config& config);

/// Returns why peers on other machines cannot connect to the address in sync.bind: it is a loopback address,
/// but the brokers are remote. Empty if they can connect, if sync.advertise is set, or for a group of one.
/// May wait for a DNS lookup.
std::string unreachable_for_peers(const Config& config);

/// Logs a warning if rows go to brokers unencrypted, or if peers cannot reach this device.
void warn_of_networks(const Config& config, Logger& log);

}  // namespace rivulet::runtime
