// Uninitialized memory of the process never leaves it: not in a record, a message or a file.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/device_group.h"
#include "tests/support/kafka_client.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

/// Allocated memory contains 0x85, freed memory 0x7a. Each is searched as bytes and in base64, where the
/// inside of such a stretch looks the same at any start. No image of MNIST, which is sent, too, has more than
/// nine of either in a row; for most other values some have ten. Contributions are safe, too: many selected
/// values are alike, but those are near the smallest selected one, and as one byte these two are next to the
/// largest.
constexpr std::string_view tunables = "glibc.malloc.perturb=122:glibc.malloc.tcache_count=0";
const std::array<std::string, 4> stretches = {std::string(10, '\x85'), std::string(10, '\x7a'), "hYWFhYWF",
                                              "enp6enp6"};

std::size_t find_unset(std::string_view bytes) {
  std::size_t first = std::string_view::npos;
  for (const auto& stretch : stretches) first = std::min(first, bytes.find(stretch));
  return first;
}
bool has_unset(std::string_view bytes) {
  return find_unset(bytes) != std::string_view::npos;
}

/// The first position and its surroundings: "at 66 of 2564: 0f ef ef ...".
std::string surroundings(std::string_view bytes) {
  const std::size_t at = find_unset(bytes);
  std::string text = "at " + std::to_string(at) + " of " + std::to_string(bytes.size()) + ":";
  const std::size_t from = at - std::min<std::size_t>(at, 48);
  static constexpr char digits[] = "0123456789abcdef";
  for (const char byte : bytes.substr(from, 112)) {
    const auto value = static_cast<unsigned char>(byte);
    text += {' ', digits[value >> 4U], digits[value & 15U]};
  }
  return text;
}

struct Perturbed {
  Perturbed() { ::setenv("GLIBC_TUNABLES", tunables.data(), 1); }  // NOLINT(concurrency-mt-unsafe)
  ~Perturbed() { ::unsetenv("GLIBC_TUNABLES"); }                   // NOLINT(concurrency-mt-unsafe)
};

/// Captures the traffic of the loopback interface during its lifetime, in a network namespace of this program
/// and its children. Needs root.
class Wire {
 public:
  Wire() {
    REQUIRE(::unshare(CLONE_NEWNET) == 0);
    REQUIRE(run({.command = {"ip", "link", "set", "lo", "up"}}, 10s).status.code == 0);
    fd_ = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_IP));
    REQUIRE(fd_ >= 0);
    const int room = 64 << 20;
    REQUIRE(::setsockopt(fd_, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) == 0);
    sockaddr_ll loopback{};
    loopback.sll_family = AF_PACKET;
    loopback.sll_protocol = htons(ETH_P_IP);
    loopback.sll_ifindex = static_cast<int>(::if_nametoindex("lo"));
    REQUIRE(::bind(fd_, reinterpret_cast<const sockaddr*>(&loopback), sizeof loopback) == 0);
    thread_ = std::thread([this] { listen(); });
  }
  ~Wire() {
    stop();
    ::close(fd_);
  }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  void stop() {
    over_ = true;
    if (!thread_.joinable()) return;
    thread_.join();
    tpacket_stats seen{};
    socklen_t size = sizeof seen;
    REQUIRE(::getsockopt(fd_, SOL_PACKET, PACKET_STATISTICS, &seen, &size) == 0);
    missed = seen.tp_drops;
  }
  std::uint64_t bytes = 0;            ///< after stop()
  unsigned missed = 0;                ///< packets, after stop()
  std::vector<std::string> findings;  ///< packets, after stop()

 private:
  void listen() {
    std::vector<char> packet(1 << 17);
    pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
    while (!over_) {
      if (::poll(&ready, 1, 50) <= 0) continue;
      const auto got = ::recv(fd_, packet.data(), packet.size(), 0);
      if (got <= 0) continue;
      bytes += static_cast<std::uint64_t>(got);
      const std::string_view seen(packet.data(), static_cast<std::size_t>(got));
      if (has_unset(seen) && findings.size() < 5) findings.emplace_back(seen);
    }
  }
  int fd_ = -1;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

/// "hello" for a control record.
std::string kind_of(const std::string& record) {
  const auto at = record.find("\"type\":\"");
  REQUIRE(at != std::string::npos);
  return record.substr(at + 8, record.find('"', at + 8) - at - 8);
}

}  // namespace

TEST_CASE("Unset bytes: records, messages and files of a group that loses a device and ends have none") {
  const Perturbed memory;
  Wire wire;
  DeviceGroup group({.devices = 2, .on_peer_loss = "reform"});
  group.feed(200, {"--labels-per-device", "5"});
  group.start_all();
  REQUIRE_MESSAGE(group.formed(60s), group.story());
  REQUIRE_MESSAGE(group.trained(3, 60s), group.story());
  group.device(1).send_signal(SIGKILL);
  group.start(1);
  REQUIRE_MESSAGE(group.device(1).wait_for_output("group formed", 60s), group.story());
  REQUIRE_MESSAGE(group.trained(3, 60s), group.story());
  const auto run = run_rivulet({"stop", "--job", "mnist", "--brokers", group.brokers()}, 60s);
  INFO(run.errors);
  REQUIRE(run.status.code == 0);
  for (int i = 0; i < 2; ++i) REQUIRE_MESSAGE(group.device(i).wait(60s), group.story());
  const std::string topic = "rivulet.mnist.control";
  const auto ends = watermarks(group.brokers(), topic, 0);
  REQUIRE(ends);
  const auto count = static_cast<std::size_t>(ends.value().second);
  const auto records = consume(group.brokers(), topic, 0, 0, count, 20s);
  REQUIRE_MESSAGE(records, records.error().message);
  wire.stop();

  std::set<std::string> kinds;
  for (const auto& record : records.value()) {
    CAPTURE(record.value);
    CHECK_FALSE(has_unset(record.value));
    kinds.insert(kind_of(record.value));
  }
  std::string all;
  for (const auto& kind : kinds) all += kind + " ";
  MESSAGE(records.value().size(), " records: ", all);
  CHECK(kinds.size() >= 5);
  MESSAGE(wire.bytes, " bytes of messages");
  CHECK(wire.bytes > 1'000'000);
  CHECK(wire.missed == 0);
  for (const auto& packet : wire.findings) FAIL_CHECK("a message has some ", surroundings(packet));
  std::size_t files = 0;
  for (int i = 0; i < 2; ++i)
    for (const auto& entry : std::filesystem::recursive_directory_iterator(group.directory(i))) {
      if (!entry.is_regular_file()) continue;
      ++files;
      CAPTURE(entry.path().string());
      CHECK_FALSE(has_unset(read_file(entry.path())));
    }
  CHECK(files > 8);  // checkpoints with private parts, anchors, decisions, final states, owner files
}
