#include "sync/transport/gloo/rank_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>
#include <utility>

namespace rivulet::sync::gloo_door {
namespace {

constexpr std::uint8_t seal_mark = 0xad;
/// Bytes of an address before the numbers.
constexpr std::size_t fixed = sizeof(sockaddr_storage) + sizeof(std::uint64_t);

std::optional<std::size_t> address_offset(const Blob& blob) {
  std::uint64_t host = 0;
  if (blob.size() < 8) return std::nullopt;
  std::memcpy(&host, blob.data(), 8);
  if (host > 1024 || blob.size() < 8 + host + 8 + sizeof(sockaddr_storage) + 8) return std::nullopt;
  std::uint64_t length = 0;
  std::memcpy(&length, blob.data() + 8 + host, 8);
  if (length != sizeof(sockaddr_storage) + 8) return std::nullopt;
  return 8 + host + 8;
}

/// Returns the address with another IP and the same port; empty if `ip` is of the other family.
std::optional<sockaddr_storage> with_ip(sockaddr_storage address, const std::string& ip) {
  if (ip.empty()) return address;
  void* const at = address.ss_family == AF_INET
                       ? static_cast<void*>(&reinterpret_cast<sockaddr_in*>(&address)->sin_addr)
                       : &reinterpret_cast<sockaddr_in6*>(&address)->sin6_addr;
  if (inet_pton(address.ss_family, ip.c_str(), at) != 1) return std::nullopt;
  return address;
}

/// Gloo's own order: the bytes of the IP, then the port as stored in memory.
int compare(const sockaddr_storage& a, const sockaddr_storage& b) {
  if (a.ss_family == AF_INET) {
    const auto& x = reinterpret_cast<const sockaddr_in&>(a);
    const auto& y = reinterpret_cast<const sockaddr_in&>(b);
    const int order = std::memcmp(&x.sin_addr, &y.sin_addr, sizeof x.sin_addr);
    return order != 0 ? order : x.sin_port - y.sin_port;
  }
  const auto& x = reinterpret_cast<const sockaddr_in6&>(a);
  const auto& y = reinterpret_cast<const sockaddr_in6&>(b);
  const int order = std::memcmp(&x.sin6_addr, &y.sin6_addr, sizeof x.sin6_addr);
  return order != 0 ? order : x.sin6_port - y.sin6_port;
}

/// Copies family, port and IP; all other bytes are 0.
sockaddr_storage bare(const sockaddr_storage& address) {
  sockaddr_storage out{};
  out.ss_family = address.ss_family;
  if (address.ss_family == AF_INET) {
    const auto& from = reinterpret_cast<const sockaddr_in&>(address);
    auto& to = reinterpret_cast<sockaddr_in&>(out);
    to.sin_port = from.sin_port;
    to.sin_addr = from.sin_addr;
    return out;
  }
  const auto& from = reinterpret_cast<const sockaddr_in6&>(address);
  auto& to = reinterpret_cast<sockaddr_in6&>(out);
  to.sin6_port = from.sin6_port;
  to.sin6_addr = from.sin6_addr;
  to.sin6_scope_id = from.sin6_scope_id;
  return out;
}

Blob with_address(Blob blob, const sockaddr_storage& address) {
  std::memcpy(blob.data() + *address_offset(blob), &address, sizeof address);
  return blob;
}

}  // namespace

std::optional<sockaddr_storage> address_in(const Blob& blob) {
  const auto offset = address_offset(blob);
  if (!offset) return std::nullopt;
  sockaddr_storage address;
  std::memcpy(&address, blob.data() + *offset, sizeof address);
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return std::nullopt;
  return address;
}

bool complete(const Blob& blob, std::uint32_t world) {
  const auto offset = address_offset(blob);
  return offset && address_in(blob) &&
         blob.size() >= *offset + fixed + std::size_t{world} * sizeof(std::uint64_t);
}

Blob made_anew(const Blob& blob, std::uint32_t world) {
  const std::size_t numbers = fixed + std::size_t{world} * sizeof(std::uint64_t);
  Blob out(blob.begin(), blob.begin() + static_cast<std::ptrdiff_t>(*address_offset(blob) + numbers));
  return with_address(std::move(out), bare(*address_in(blob)));
}

Blob with_numbers(Blob blob, std::uint32_t world, const std::function<std::int64_t(std::int64_t)>& instead) {
  std::uint8_t* at = blob.data() + *address_offset(blob) + fixed;
  for (std::uint32_t rank = 0; rank < world; ++rank, at += sizeof(std::int64_t)) {
    std::int64_t number = 0;
    std::memcpy(&number, at, sizeof number);
    number = instead(number);
    std::memcpy(at, &number, sizeof number);
  }
  return blob;
}

std::vector<std::string> printed(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  const bool v4 = address.ss_family == AF_INET;
  const auto& in4 = reinterpret_cast<const sockaddr_in&>(address);
  const auto& in6 = reinterpret_cast<const sockaddr_in6&>(address);
  inet_ntop(address.ss_family, v4 ? static_cast<const void*>(&in4.sin_addr) : &in6.sin6_addr, text,
            sizeof text);
  const std::uint16_t port = v4 ? in4.sin_port : in6.sin6_port;
  const std::string ip = "[" + std::string(text) + "]:";
  return {ip + std::to_string(port), ip + std::to_string(ntohs(port))};
}

Blob seal(Blob blob, const std::string& advertise) {
  blob.insert(blob.end(), advertise.begin(), advertise.end());
  blob.push_back(static_cast<std::uint8_t>(advertise.size()));
  blob.push_back(seal_mark);
  return blob;
}

std::optional<Sealed> unseal(const Blob& value) {
  if (value.size() < 2 || value.back() != seal_mark) return std::nullopt;
  const std::size_t length = value[value.size() - 2];
  if (value.size() < 2 + length) return std::nullopt;
  const auto end = value.end() - 2;
  const auto begin = end - static_cast<std::ptrdiff_t>(length);
  return Sealed{Blob(value.begin(), begin), std::string(begin, end)};
}

Result<Blob> blob_for(std::uint32_t me, const Sealed& mine, std::uint32_t peer, const Sealed& theirs) {
  if (me == peer || (mine.advertise.empty() && theirs.advertise.empty())) return theirs.blob;
  const auto my_local = address_in(mine.blob);
  const auto their_local = address_in(theirs.blob);
  if (!my_local || !their_local) {
    return Error{ErrorCode::protocol,
                 "rank " + std::to_string(peer) + " published an address of an unknown layout"};
  }
  const auto my_door = with_ip(*my_local, mine.advertise);
  const auto their_door = with_ip(*their_local, theirs.advertise);
  const bool one_family = my_local->ss_family == their_local->ss_family;
  if (!my_door || !their_door || !one_family) {
    return Error{ErrorCode::invalid_config, "sync.bind and sync.advertise of ranks " + std::to_string(me) +
                                                " and " + std::to_string(peer) + " mix IPv4 and IPv6"};
  }
  const bool i_can_dial = compare(*my_local, *their_door) > 0;
  const bool they_can_dial = compare(*their_local, *my_door) > 0;
  if (!i_can_dial && !they_can_dial) {
    return Error{ErrorCode::invalid_config, "rank " + std::to_string(me) + " and rank " +
                                                std::to_string(peer) +
                                                " cannot connect with their sync.advertise: the local "
                                                "address of one must be numerically above the "
                                                "address that the other advertises"};
  }
  if (i_can_dial && (!they_can_dial || me < peer)) return with_address(theirs.blob, *their_door);
  // The peer dials. Given an address above this one, Gloo listens here and never uses it.
  return with_address(theirs.blob, *with_ip(*their_local, my_local->ss_family == AF_INET
                                                              ? "255.255.255.255"
                                                              : "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"));
}

}  // namespace rivulet::sync::gloo_door
