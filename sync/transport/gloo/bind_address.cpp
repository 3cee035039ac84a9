#include "sync/transport/gloo/bind_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <optional>

namespace rivulet::sync::gloo_door {

std::string numeric(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST];
  if (getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return text;
}

namespace {

Error refused(const std::string& bind, const std::string& why) {
  return {ErrorCode::invalid_config,
          "sync.bind = \"" + bind + "\" " + why +
              "; use an interface name such as eth0 or one of this machine's addresses"};
}

bool is_wildcard(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr == htonl(INADDR_ANY);
  }
  return IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr) != 0;
}

/// Only the kernel can tell whether an address is local (all of 127/8 is).
bool is_local(const addrinfo& info) {
  const int fd = socket(info.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool bound = ::bind(fd, info.ai_addr, info.ai_addrlen) == 0;
  close(fd);
  return bound;
}

struct Interface {
  bool exists = false;
  std::string v4, v6;
};

Interface find_interface(const std::string& name) {
  Interface found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (name != i->ifa_name) continue;
    found.exists = true;
    if (i->ifa_addr == nullptr) continue;
    if (i->ifa_addr->sa_family == AF_INET && found.v4.empty())
      found.v4 = numeric(i->ifa_addr, sizeof(sockaddr_in));
    if (i->ifa_addr->sa_family == AF_INET6 && found.v6.empty())
      found.v6 = numeric(i->ifa_addr, sizeof(sockaddr_in6));
  }
  return found;
}

/// Returns the source address that the kernel gives a connected datagram socket. Empty if there is no route.
std::string source_towards(const std::string& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  if (getaddrinfo(address.c_str(), "9", &hints, &list) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  const int fd = socket(list->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {};
  sockaddr_storage local{};
  socklen_t length = sizeof local;
  const bool known = connect(fd, list->ai_addr, list->ai_addrlen) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&local), &length) == 0;
  close(fd);
  return known ? numeric(reinterpret_cast<const sockaddr*>(&local), length) : std::string();
}

}  // namespace

Result<std::string> local_address(const std::string& bind) {
  if (const Interface i = find_interface(bind); i.exists) {
    if (!i.v4.empty()) return i.v4;
    if (!i.v6.empty()) return i.v6;
    return refused(bind, "is an interface without an address");
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (bind.empty() || getaddrinfo(bind.c_str(), nullptr, &hints, &list) != 0) {
    return refused(bind, "is not a known interface, address or host name");
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  for (const addrinfo* i = list; i != nullptr; i = i->ai_next) {
    if (is_wildcard(i->ai_addr)) return refused(bind, "would listen on every interface");
    if (is_local(*i)) return numeric(i->ai_addr, i->ai_addrlen);
  }
  return refused(bind, "is not an address of this machine");
}

std::string local_address_towards(std::span<const std::string> addresses) {
  for (const std::string& address : addresses)
    if (auto local = source_towards(address); !local.empty()) return local;
  return {};
}

Status check_advertised(const std::string& advertise) {
  unsigned char bytes[sizeof(in6_addr)];
  const bool known =
      inet_pton(AF_INET, advertise.c_str(), bytes) == 1 || inet_pton(AF_INET6, advertise.c_str(), bytes) == 1;
  if (known && advertise != "0.0.0.0" && advertise != "::") return ok();
  return Error{ErrorCode::invalid_config,
               "sync.advertise = \"" + advertise +
                   "\" must be the numeric address that peers dial, not a name or a wildcard"};
}

}  // namespace rivulet::sync::gloo_door
