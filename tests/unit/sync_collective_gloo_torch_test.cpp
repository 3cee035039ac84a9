#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>
#include <semaphore>
#include <sstream>

#include "core/clock.h"
#include "sync/transport/gloo/bind_address.h"
#include "sync/transport/gloo/group.h"
#include "sync/transport/gloo/quiet_stdout.h"
#include "sync/transport/gloo/rank_address.h"
#include "sync/transport/gloo_transport.h"
#include "tests/support/quiet_rank.h"

namespace {

using namespace rivulet;
using namespace rivulet::sync::gloo_door;

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
  REQUIRE(pipe);
  std::string text;
  std::array<char, 4096> buffer{};
  while (const auto n = fread(buffer.data(), 1, buffer.size(), pipe.get())) text.append(buffer.data(), n);
  return text;
}

TEST_CASE("Gloo shim: the process group has the size that LibTorch gives it") {
  CHECK(process_group_bytes() == 544);
}

TEST_CASE("Gloo shim: this program asks LibTorch for no symbol of gloo itself") {
  const std::string self = "/proc/" + std::to_string(getpid()) + "/exe";
  const std::string undefined = output_of("nm -DC --undefined-only " + self);
  REQUIRE(undefined.find("c10d::ProcessGroupGloo::") != std::string::npos);
  std::istringstream lines(undefined);
  for (std::string line; std::getline(lines, line);) {
    const auto name = line.substr(line.find_first_not_of(" Uwv"));
    const bool asks = name.starts_with("gloo::") || name.find("for gloo::") != std::string::npos;
    CHECK_MESSAGE(!asks, line);
  }
}

TEST_CASE("Gloo bind: an interface, an address and a name of this machine become a numeric address") {
  for (const char* bind : {"lo", "127.0.0.1", "localhost"}) {
    const auto address = local_address(bind);
    REQUIRE(address);
    CHECK((address.value() == "127.0.0.1" || address.value() == "::1"));
  }
  CHECK(local_address("127.0.0.2").value() == "127.0.0.2");
}

sync::GlooConfig towards(std::vector<std::string> hosts) {
  sync::GlooConfig config;
  config.bind = "auto";
  config.towards = [hosts = std::move(hosts)] { return hosts; };
  return config;
}

TEST_CASE("Gloo bind: auto is the address from which the brokers are reached, by name or number") {
  for (const std::string host : {"127.0.0.9", "localhost"}) {
    const auto address = sync::local_peer_address(towards({host}));
    REQUIRE_MESSAGE(address, address.error().message);
    CHECK((address.value() == "127.0.0.1" || address.value() == "::1"));
  }
  // Every address of this machine is reachable from itself, and is preferred to a loopback address.
  std::istringstream own_addresses(output_of("hostname -I"));
  for (std::string own; own_addresses >> own;) {
    CHECK(sync::local_peer_address(towards({own})).value() == own);
    CHECK(sync::local_peer_address(towards({"localhost", "127.0.1.1", own})).value() == own);
  }
}

/// Of two devices.
Status begin_view(const sync::Connect& connect) {
  testing::NoAddresses book;
  testing::LastCall wake;
  sync::ViewSpec view;
  view.members = std::vector<std::string>{"a", "b"};
  const auto transport = connect(view, book, wake);
  return transport ? ok() : Status(transport.error());
}

/// Each attempt waits a moment for an address.
bool a_view_begins(const sync::Connect& connect) {
  constexpr int tries = 60;
  for (int i = 0; i < tries; ++i)
    if (begin_view(connect)) return true;
  return false;
}

TEST_CASE("Gloo bind: with auto, a network that comes up late ends no device: views look for the address") {
  std::atomic<int> asked{0};
  sync::GlooConfig config;
  config.bind = "auto";
  config.towards = [&] { return std::vector<std::string>(asked++ < 2 ? 0 : 1, "127.0.0.1"); };
  const RealClock clock;
  const auto connect = sync::make_gloo_connect(config, clock);
  REQUIRE(connect);
  Status view = begin_view(connect.value());
  REQUIRE_FALSE(view);
  CHECK(view.error().code == ErrorCode::unavailable);
  CHECK(view.error().message.find("sync.bind = \"auto\"") != std::string::npos);
  CHECK(a_view_begins(connect.value()));
  CHECK(begin_view(connect.value()));
  CHECK(asked == 3);  // cached answers are not requested again
}

TEST_CASE("Gloo bind: with auto, who is asked for the brokers may take long, and holds no view up for that") {
  std::binary_semaphore may_answer{0};
  sync::GlooConfig config;
  config.bind = "auto";
  config.towards = [&] {
    may_answer.acquire();
    return std::vector<std::string>{"127.0.0.1"};
  };
  const RealClock clock;
  const auto connect = sync::make_gloo_connect(config, clock);
  REQUIRE(connect);
  CHECK_FALSE(begin_view(connect.value()));
  may_answer.release();
  CHECK(a_view_begins(connect.value()));
}

TEST_CASE("Gloo bind: a wildcard and what is not local are refused by name") {
  const RealClock clock;
  for (const char* bind : {"0.0.0.0", "::", "192.0.2.1", "no-such-interface0", ""}) {
    sync::GlooConfig config;
    config.bind = bind;
    const auto connect = sync::make_gloo_connect(config, clock);
    REQUIRE_FALSE(connect);
    CHECK(connect.error().code == ErrorCode::invalid_config);
    CHECK(connect.error().message.find("sync.bind = \"" + std::string(bind) + "\"") != std::string::npos);
  }
}

TEST_CASE("Gloo advertise: a name or a wildcard is refused") {
  const RealClock clock;
  for (const char* advertise : {"0.0.0.0", "::", "edge.example"}) {
    sync::GlooConfig config;
    config.advertise = advertise;
    const auto connect = sync::make_gloo_connect(config, clock);
    REQUIRE_FALSE(connect);
    CHECK(connect.error().code == ErrorCode::invalid_config);
  }
}

// ---- advertised addresses
// -----------------------------------------------------------------------------------------

Blob blob_of(const std::string& ip, std::uint16_t port) {
  sockaddr_storage storage{};
  auto& in = reinterpret_cast<sockaddr_in&>(storage);
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  REQUIRE(inet_pton(AF_INET, ip.c_str(), &in.sin_addr) == 1);
  const std::string host = "edge";
  Blob blob(8 + host.size() + 8 + sizeof storage + 8 + 3 * 8);
  const std::uint64_t host_length = host.size(), address_length = sizeof storage + 8;
  std::memcpy(blob.data(), &host_length, 8);
  std::memcpy(blob.data() + 8, host.data(), host.size());
  std::memcpy(blob.data() + 8 + host.size(), &address_length, 8);
  std::memcpy(blob.data() + 8 + host.size() + 8, &storage, sizeof storage);
  return blob;
}

std::string ip_in(const Blob& blob) {
  const auto address = address_in(blob);
  REQUIRE(address);
  char text[64];
  inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(*address).sin_addr, text, sizeof text);
  return text;
}

TEST_CASE("Gloo advertise: travels behind the address and comes back") {
  const auto sealed = unseal(seal(blob_of("10.0.0.5", 4000), "34.1.2.3"));
  REQUIRE(sealed);
  CHECK(sealed->advertise == "34.1.2.3");
  CHECK(sealed->blob == blob_of("10.0.0.5", 4000));
  CHECK_FALSE(unseal({}));
  CHECK_FALSE(unseal({1, 2, 3}));
  CHECK_FALSE(unseal({200, 0xad}));
}

TEST_CASE("Gloo address: what Gloo would read beyond the end of is refused before it sees it") {
  const Blob good = blob_of("10.0.0.5", 4000);
  CHECK(complete(good, 3));
  CHECK_FALSE(complete(good, 4));  // one pair number too few
  for (std::size_t n = 0; n < good.size(); ++n)
    CHECK_FALSE(complete(Blob(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n)), 3));
  Blob long_name = good;
  const std::uint64_t megabyte = 1 << 20;
  std::memcpy(long_name.data(), &megabyte, 8);
  CHECK_FALSE(complete(long_name, 3));
}

TEST_CASE("Gloo address: of what is published every byte was set, whatever Gloo left in the others") {
  const Blob good = blob_of("10.0.0.5", 4000);
  CHECK(made_anew(good, 3) == good);
  Blob dirty = good;
  dirty.insert(dirty.end(), 100, 0xb6);
  const std::size_t storage = 8 + 4 + 8;
  for (std::size_t i = sizeof(sockaddr_in) - 8; i < sizeof(sockaddr_storage); ++i) dirty[storage + i] = 0xb6;
  CHECK(made_anew(dirty, 3) == good);
  sockaddr_storage six{};
  auto& in = reinterpret_cast<sockaddr_in6&>(six);
  std::memset(&six, 0xb6, sizeof six);
  in.sin6_family = AF_INET6;
  in.sin6_port = htons(4000);
  in.sin6_addr = in6addr_loopback;
  in.sin6_scope_id = 3;
  Blob link = good;
  std::memcpy(link.data() + storage, &six, sizeof six);
  const Blob clean = made_anew(link, 3);
  const auto address = address_in(clean);
  REQUIRE(address);
  const auto& kept = reinterpret_cast<const sockaddr_in6&>(*address);
  CHECK(kept.sin6_port == in.sin6_port);
  CHECK(kept.sin6_scope_id == 3);
  CHECK(std::memcmp(&kept.sin6_addr, &in6addr_loopback, sizeof kept.sin6_addr) == 0);
  CHECK(std::count(clean.begin(), clean.end(), 0xb6) == 0);
}

TEST_CASE("Gloo advertise: without one an address passes unchanged") {
  const Sealed a{blob_of("10.0.0.5", 4000), ""}, b{blob_of("10.0.0.6", 4000), ""};
  CHECK(blob_for(0, a, 1, b).value() == b.blob);
}

TEST_CASE("Gloo advertise: one side dials the advertised address and the other listens") {
  // Local addresses above the public ones: both could connect; the lower rank does.
  const Sealed a{blob_of("192.168.0.5", 4000), "34.0.0.5"}, b{blob_of("192.168.7.6", 4000), "34.0.0.6"};
  CHECK(ip_in(blob_for(0, a, 1, b).value()) == "34.0.0.6");
  CHECK(ip_in(blob_for(1, b, 0, a).value()) == "255.255.255.255");
  // Only the one without an advertised address can connect.
  const Sealed c{blob_of("172.16.0.9", 4000), ""}, d{blob_of("10.0.0.9", 4000), "34.0.0.9"};
  CHECK(ip_in(blob_for(0, c, 1, d).value()) == "34.0.0.9");
  CHECK(ip_in(blob_for(1, d, 0, c).value()) == "255.255.255.255");
}

TEST_CASE("Gloo advertise: two devices that could not dial each other are told so") {
  const Sealed a{blob_of("10.0.0.5", 4000), "34.0.0.5"}, b{blob_of("10.0.0.6", 4000), "34.0.0.6"};
  const auto blob = blob_for(0, a, 1, b);
  REQUIRE_FALSE(blob);
  CHECK(blob.error().code == ErrorCode::invalid_config);
  CHECK(blob.error().message.find("sync.advertise") != std::string::npos);
}

TEST_CASE("Gloo output: what Gloo prints while connecting is dropped, the rest passes") {
  QuietStdout::install();
  std::cout.flush();
  {
    const QuietStdout quiet;
    std::cout << "this line must not be seen" << std::endl;
  }
  CHECK(std::cout.good());
  const std::string self = "/proc/" + std::to_string(getpid()) + "/exe";
  if (std::getenv("RIVULET_TEST_INNER") == nullptr) {
    const std::string text = output_of("RIVULET_TEST_INNER=1 " + self + " -tc='Gloo output*'");
    CHECK(text.find("must not be seen") == std::string::npos);
    CHECK(text.find("Status: SUCCESS") != std::string::npos);
  }
}

}  // namespace
