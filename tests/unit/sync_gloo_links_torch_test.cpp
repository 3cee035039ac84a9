// Names of peers, and valid bytes on a connection: real sockets of this machine, without Gloo.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "core/clock.h"
#include "sync/transport/gloo/dialer.h"
#include "sync/transport/gloo/frame_check.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::gloo_door;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

/// A bound socket that does not listen yet.
struct Bound {
  Bound() : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    auto& in = reinterpret_cast<sockaddr_in&>(address);
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&in), sizeof in) == 0);
    socklen_t size = sizeof in;
    REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&in), &size) == 0);
  }
  ~Bound() { ::close(fd); }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;
  int fd;
  sockaddr_storage address{};
};

constexpr auto facts = static_cast<std::uint64_t>(data_tag(static_cast<int>(Lane::facts), true));

}  // namespace

TEST_CASE("Dialer: a peer that does not answer is called again, and hears its number first") {
  const RealClock clock;
  const Bound peer;
  Dialer dialer(clock);
  int answered = -1;
  dialer.dial(peer.address, 77, [&](int fd) { answered = fd; });
  for (int k = 0; k < 10; ++k) dialer.step(1ms);
  CHECK(answered == -1);  // rejected
  REQUIRE(::listen(peer.fd, 4) == 0);
  const TimePoint begin = clock.now();
  while (answered < 0 && clock.now() - begin < deadline_slack * 5s) dialer.step(2ms);
  REQUIRE(answered >= 0);
  const int other = ::accept4(peer.fd, nullptr, nullptr, SOCK_CLOEXEC);
  std::int64_t number = 0;
  CHECK(::recv(other, &number, sizeof number, MSG_WAITALL) == sizeof number);
  CHECK(number == 77);
  ::close(other);
  ::close(answered);
}

TEST_CASE("Framing: messages of the lanes, and announcements of some, are all that Gloo gets to see") {
  FrameCheck check;
  const FrameCheck::Posted posted{.sends = 3, .receives = 3};
  const auto good = Preamble{.bytes = 64, .opcode = Preamble::message, .slot = facts, .length = 16};
  CHECK(check.refuse(good, posted) == nullptr);
  CHECK(FrameCheck::refuse_length(good, 16) == nullptr);
  CHECK(FrameCheck::refuse_length(good, 15) != nullptr);
  CHECK(FrameCheck::refuse_length(good, 17) != nullptr);
  const auto refuses = [&](auto change) {
    Preamble p = good;
    change(p);
    return check.refuse(p, posted) != nullptr || FrameCheck::refuse_length(p, 16) != nullptr;
  };
  CHECK(refuses([](Preamble& p) { p.bytes = 63; }));
  CHECK(refuses([](Preamble& p) { p.opcode = Preamble::pinned; }));
  CHECK(refuses([](Preamble& p) { p.opcode = 4; }));
  CHECK(refuses([](Preamble& p) { p.opcode |= std::uint64_t{1} << 32U; }));
  CHECK(refuses([](Preamble& p) { p.slot = 2; }));
  CHECK(refuses([](Preamble& p) { p.slot = meshes * lanes_end; }));
  CHECK(refuses([](Preamble& p) { p.offset = 1; }));
  CHECK(refuses([](Preamble& p) { p.receiver_offset = 1; }));
  for (const auto kind : {Preamble::send_ready, Preamble::receive_ready}) {
    const Preamble said{.bytes = 48, .opcode = kind, .slot = sentinel_tag, .length = 8};
    for (std::uint64_t k = 0; k < FrameCheck::announced_most + 3; ++k)
      REQUIRE(check.refuse(said, posted) == nullptr);
    CHECK(check.refuse(said, posted) != nullptr);
  }
}
