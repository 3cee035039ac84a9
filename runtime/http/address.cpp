#include "runtime/http/address.h"

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
  if (host == "[::1]") return true;
  in_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

}  // namespace

Result<Address> parse_loopback(const std::string& listen) {
  const std::size_t colon = listen.rfind(':');
  Address out;
  if (colon == std::string::npos || colon == 0 || !parse_port(listen.substr(colon + 1), out.port)) {
    return Error{ErrorCode::invalid_config,
                 fmt::format("http.listen = '{}' is not HOST:PORT, for example 127.0.0.1:9464", listen)};
  }
  out.host = listen.substr(0, colon);
  if (out.host == "localhost") out.host = "127.0.0.1";
  if (is_loopback(out.host)) return out;
  return Error{
      ErrorCode::invalid_config,
      fmt::format("http.listen = '{}' is not a loopback address: the pages have no access control, so this "
                  "version serves 127.0.0.1 only; put a proxy in front to reach them from elsewhere",
                  listen)};
}

}  // namespace rivulet::runtime
