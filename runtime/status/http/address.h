#pragma once
#include <string>

#include "core/result.h"

namespace rivulet::runtime {

struct Address {
  std::string host;  ///< as a number
  int port = 0;
  bool loopback = true;  ///< only this machine reaches it
};

/// "127.0.0.1:9464", "localhost:0", "0.0.0.0:9464"; IPv4 only, as the server is built. Errors: invalid_config
/// (names http.listen and what is wrong).
Result<Address> parse_listen(const std::string& listen);

}  // namespace rivulet::runtime
