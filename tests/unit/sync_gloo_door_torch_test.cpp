// Admission of connections to a view: real sockets of this machine, without Gloo.
#include <dirent.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>

#include <cerrno>
#include <set>
#include <vector>

#include "sync/transport/gloo/peer_door.h"
#include "sync/transport/gloo/rank_address.h"
#include "sync/transport/gloo_transport.h"
#include "tests/support/raw_http.h"

namespace {

using namespace rivulet;
using namespace rivulet::sync::gloo_door;
using rivulet::testing::connect_to;
using rivulet::testing::start_connecting;
using namespace std::chrono_literals;

std::shared_ptr<PeerDoor> open_door() {
  auto door = PeerDoor::open("127.0.0.1", 0, 5s);
  REQUIRE(door);
  return std::move(door).value();
}

/// A connection that has sent `number`.
int say(int port, PeerDoor::Number number) {
  const int fd = connect_to(port);
  REQUIRE(fd >= 0);
  REQUIRE(::send(fd, &number, sizeof number, MSG_NOSIGNAL) == sizeof number);
  return fd;
}

/// True if the peer has closed it without a message.
bool is_closed(int fd) {
  char byte = 0;
  const auto n = ::recv(fd, &byte, 1, 0);
  return n == 0 || (n < 0 && errno == ECONNRESET);
}

/// Excludes connections pending because of a full accept queue or a dropped packet.
int connected(const std::vector<int>& fds) {
  int n = 0;
  for (const int fd : fds) {
    pollfd p{fd, POLLOUT, 0};
    int error = 0;
    socklen_t size = sizeof error;
    if (::poll(&p, 1, 0) != 1) continue;
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == 0 && (p.revents & POLLHUP) == 0) ++n;
  }
  return n;
}

int open_files() {
  int n = 0;
  DIR* dir = ::opendir("/proc/self/fd");
  while (::readdir(dir) != nullptr) ++n;
  ::closedir(dir);
  return n;
}

}  // namespace

TEST_CASE("Peer door: who says a number of the view comes in, once, and Gloo reads its own") {
  const auto door = open_door();
  const auto first = door->announce(0);
  const auto second = door->announce(1);
  CHECK(first != second);
  CHECK(first >= 0);
  CHECK_FALSE(door->welcome(0));  // what Gloo counts is not a key
  const int guest = say(door->port(), second);
  const int inside = door->accept();
  CHECK(inside >= 0);
  CHECK(door->accept() == -1);
  CHECK(errno == EAGAIN);
  CHECK(door->welcome(second) == 1);
  CHECK_FALSE(door->welcome(second));
  const int again = say(door->port(), second);
  CHECK(door->accept() == -1);
  CHECK(is_closed(again));
  CHECK(door->turned_away() == 1);
  for (const int fd : {guest, inside, again}) ::close(fd);
}

TEST_CASE("Peer door: the numbers of two views have nothing in common") {
  std::set<PeerDoor::Number> numbers;
  for (int view = 0; view < 2; ++view) {
    const auto door = open_door();
    for (int i = 0; i < 64; ++i) numbers.insert(door->announce(i));
  }
  CHECK(numbers.size() == 128);
}

TEST_CASE("Peer door: wrong words are closed, and the member behind them comes in") {
  const auto door = open_door();
  const auto number = door->announce(7);
  std::vector<int> strangers;
  for (int i = 0; i < 50; ++i) strangers.push_back(say(door->port(), i));
  const int short_one = connect_to(door->port());
  ::send(short_one, "hello", 5, MSG_NOSIGNAL);
  strangers.push_back(short_one);
  const int member = say(door->port(), number);
  const int inside = door->accept();
  CHECK(inside >= 0);
  CHECK(door->turned_away() == 51);
  for (const int fd : strangers) CHECK(is_closed(fd));
  for (const int fd : strangers) ::close(fd);
  ::close(inside);
  ::close(member);
}

TEST_CASE("Peer door: the silent are let in to a number, whatever the kernel lets through") {
  const auto door = open_door();
  door->announce(0);
  const int same = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(door->become(same));
  const int at_once = 0;  // as with a kernel that cannot defer them
  REQUIRE(::setsockopt(same, IPPROTO_TCP, TCP_DEFER_ACCEPT, &at_once, sizeof at_once) == 0);
  ::close(same);
  const int files = open_files();
  std::vector<int> silent, inside;
  for (int i = 0; i < 200; ++i) silent.push_back(start_connecting(door->port()));
  for (int calls = 0; calls < 20; ++calls)
    for (int fd = door->accept(); fd >= 0; fd = door->accept()) inside.push_back(fd);
  CHECK(inside.size() > 0);
  CHECK(inside.size() <= PeerDoor::silent_most + 1);
  CHECK(door->turned_away() > 0);
  CHECK(open_files() == files + 200 + static_cast<int>(inside.size()));
  for (const int fd : silent) ::close(fd);
  for (const int fd : inside) ::close(fd);
}

TEST_CASE("Peer door: shut, it lets nobody in, not even who knows a number, and makes no connection") {
  const auto door = open_door();
  const auto number = door->announce(0);
  const int early = say(door->port(), number);  // is in the queue
  door->shut();
  CHECK(door->accept() == -1);
  CHECK(is_closed(early));
  std::vector<int> late;
  for (int i = 0; i < 100; ++i) late.push_back(start_connecting(door->port()));
  CHECK(connected(late) == 0);
  CHECK(door->accept() == -1);
  CHECK_FALSE(door->welcome(number));
  for (const int fd : late) ::close(fd);
  ::close(early);
}

TEST_CASE("Peer door: without a descriptor left it turns all away, and goes on when there are some") {
  const auto door = open_door();
  const auto number = door->announce(3);
  std::vector<int> received_rows;
  for (int i = 0; i < 20; ++i) received_rows.push_back(say(door->port(), i));
  received_rows.push_back(say(door->port(), number));
  const rlimit before = [] {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    return limit;
  }();
  rlimit none = before;
  const int lowest = ::dup(0);
  ::close(lowest);
  none.rlim_cur = static_cast<rlim_t>(lowest);  // all below are open
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const int nobody = door->accept();
  const int why = errno;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(nobody == -1);
  CHECK(why == EAGAIN);
  CHECK(door->turned_away() == 21);  // no member is left to wake its thread
  const int member = say(door->port(), number);
  const int inside = door->accept();
  CHECK(inside >= 0);
  received_rows.insert(received_rows.end(), {member, inside});
  for (const int fd : received_rows) ::close(fd);
}

TEST_CASE("Peer door: a fixed port is taken again view after view, and by one at a time") {
  auto door = open_door();
  const int port = door->port();
  for (int view = 0; view < 5; ++view) {
    const auto number = door->announce(0);
    const int member = say(port, number);
    const int inside = door->accept();
    REQUIRE(inside >= 0);
    const auto second = PeerDoor::open("127.0.0.1", port, 5s);
    REQUIRE_FALSE(second);
    CHECK(second.error().code == ErrorCode::unavailable);
    CHECK(second.error().message == "sync.port = " + std::to_string(port) + ": 127.0.0.1, port " +
                                        std::to_string(port) + " is in use by another device or program");
    ::close(inside);  // this side first: it keeps the port in TIME_WAIT
    ::close(member);
    door.reset();
    auto next = PeerDoor::open("127.0.0.1", port, 5s);
    REQUIRE_MESSAGE(next, next.error().message);
    door = std::move(next).value();
    CHECK(door->port() == port);
  }
}

TEST_CASE("Peer door: an address that is not of this machine is named") {
  const auto door = PeerDoor::open("192.0.2.1", 7400, 5s);
  REQUIRE_FALSE(door);
  CHECK(door.error().message.starts_with("sync.port = 7400: cannot listen on 192.0.2.1, port 7400: "));
  CHECK(PeerDoor::open("192.0.2.1", 0, 5s).error().message.starts_with("sync.bind = \"192.0.2.1\": "));
}

TEST_CASE(
    "Peer door: the kernel withholds silent connections for as long as a view of this size may connect") {
  const auto withheld_s = [](std::uint32_t members) {
    const auto door = PeerDoor::open("127.0.0.1", 0, sync::connect_deadline_of({}, members));
    REQUIRE(door);
    const int listener = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    REQUIRE(door.value()->become(listener));
    int seconds = 0;
    socklen_t size = sizeof seconds;
    CHECK(::getsockopt(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, &size) == 0);
    ::close(listener);
    return seconds;
  };
  CHECK(sync::connect_deadline_of({}, 2) == 5500ms);
  CHECK(sync::connect_deadline_of({}, 64) == 21s);
  CHECK(withheld_s(2) >= 6);
  CHECK(withheld_s(64) >= 21);
  CHECK(withheld_s(2) < 21);
}
