#pragma once
#include <sys/socket.h>

#include <span>
#include <string>

#include "core/result.h"

namespace rivulet::sync::gloo_door {

/// "10.0.0.5"; empty: not an address of the internet.
std::string numeric(const sockaddr* address, socklen_t length);

/// The numeric local address behind an interface name, host name or address. Interfaces: IPv4 before IPv6.
/// Errors: invalid_config (wildcard, not local, interface without an address).
Result<std::string> local_address(const std::string& bind);

/// The numeric local address from which this machine would reach the first of these numeric addresses that it
/// has a way to; empty: none. Asks the routing table; sends nothing.
std::string local_address_towards(std::span<const std::string> addresses);

/// Errors: invalid_config (not a numeric address, or a wildcard).
Status check_advertised(const std::string& advertise);

}  // namespace rivulet::sync::gloo_door
