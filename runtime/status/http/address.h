#pragma once
#include <string>

#include "core/result.h"

namespace rivulet::runtime {

struct Address {
  std::string host;  ///< numeric IPv4 address
  int port = 0;
  bool loopback = true;  ///< reachable only from this machine
};

/// Parses "127.0.0.1:9464", "localhost:0", "0.0.0.0:9464"; IPv4 only, as the server is built. Errors:
/// invalid_config (names http.listen and the reason).
Result<Address> parse_listen(const std::string& listen);

}  // namespace rivulet::runtime
