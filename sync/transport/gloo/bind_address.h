#pragma once
#include <sys/socket.h>

#include <span>
#include <string>

#include "core/result.h"

namespace rivulet::sync::gloo_door {

/// Returns the numeric form, for example "10.0.0.5"; empty if it is not an internet address.
std::string numeric(const sockaddr* address, socklen_t length);

/// Returns the numeric local address of an interface, host name or address. Interfaces: IPv4 before IPv6.
/// Errors: invalid_config (wildcard, not local, interface without an address).
Result<std::string> local_address(const std::string& bind);

/// Returns the numeric local address from which this machine reaches the first of these numeric addresses
/// that has a route; empty if none has. Queries the routing table, sends nothing.
std::string local_address_towards(std::span<const std::string> addresses);

/// Errors: invalid_config (not a numeric address, or a wildcard).
Status check_advertised(const std::string& advertise);

}  // namespace rivulet::sync::gloo_door
