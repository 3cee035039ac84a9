#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/time.h"

namespace rivulet::sync::gloo_door {

/// The numeric local address behind an interface name, host name or address. Interfaces: IPv4 before IPv6.
/// Errors: invalid_config (wildcard, not local, interface without an address).
Result<std::string> local_address(const std::string& bind);

/// Numeric addresses of those of `hosts` that have one here, IPv4 before IPv6. Of those alone that name
/// servers have answered within `patience`.
std::vector<std::string> numeric_addresses(std::vector<std::string> hosts, Duration patience);

/// The numeric local address from which this machine would reach the first of these numeric addresses that it
/// has a way to. Asks the routing table; sends nothing. Errors: unavailable (no way to any of them).
Result<std::string> local_address_towards(std::span<const std::string> addresses);

/// Errors: invalid_config (not a numeric address, or a wildcard).
Status check_advertised(const std::string& advertise);

}  // namespace rivulet::sync::gloo_door
