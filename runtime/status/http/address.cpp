#include "runtime/status/http/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>

namespace rivulet::runtime {
namespace {

bool parse_port(const std::string& text, int& port) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  return error == std::errc{} && stop == end && port >= 0 && port <= 65535;
}

bool is_loopback(const std::string& host) {
  in_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

bool is_number(const std::string& host) {
  in_addr four{};
  return inet_pton(AF_INET, host.c_str(), &four) == 1;
}

}  // namespace

Result<Address> parse_listen(const std::string& listen) {
  const std::size_t colon = listen.rfind(':');
  Address out;
  out.host = listen.substr(0, colon);
  if (out.host == "localhost") out.host = "127.0.0.1";
  if (colon == std::string::npos || !parse_port(listen.substr(colon + 1), out.port) || !is_number(out.host))
    return Error{ErrorCode::invalid_config,
                 fmt::format("http.listen = '{}' is not ADDRESS:PORT with a numeric IPv4 address, such as "
                             "127.0.0.1:9464 or 0.0.0.0:9464",
                             listen)};
  out.loopback = is_loopback(out.host);
  return out;
}

}  // namespace rivulet::runtime
