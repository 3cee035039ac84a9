#pragma once
#include <string>

#include "core/result.h"

namespace rivulet::runtime {

struct Address {
  std::string host;  ///< as a number, in brackets if it has colons
  int port = 0;
  bool loopback = true;  ///< only this machine reaches it
};

/// "127.0.0.1:9464", "localhost:0", "[::1]:80", "0.0.0.0:9464". Errors: invalid_config (names http.listen and
/// what is wrong).
Result<Address> parse_listen(const std::string& listen);

}  // namespace rivulet::runtime
