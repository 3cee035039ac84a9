#pragma once
#include <string>

#include "core/result.h"

namespace rivulet::sync::gloo_door {

/// The numeric local address behind an interface name, host name or address. Interfaces: IPv4 before IPv6.
/// Errors: invalid_config (wildcard, not local, interface without an address).
Result<std::string> local_address(const std::string& bind);

/// Errors: invalid_config (not a numeric address, or a wildcard).
Status check_advertised(const std::string& advertise);

}  // namespace rivulet::sync::gloo_door
