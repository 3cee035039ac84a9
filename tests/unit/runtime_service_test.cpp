// Messages to a service manager, over a real socket of its kind.
#include "runtime/process/service_manager.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

/// The manager's socket.
class Listener {
 public:
  explicit Listener(const std::string& name)
      : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    REQUIRE(name.size() < sizeof at.sun_path);
    std::memcpy(at.sun_path, name.data(), name.size());
    if (name.front() == '@') at.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    REQUIRE(bind(fd_, reinterpret_cast<const sockaddr*>(&at), size) == 0);
  }
  ~Listener() { close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::vector<std::string> heard() {
    std::vector<std::string> all;
    char buffer[512];
    for (ssize_t n = 0; (n = recv(fd_, buffer, sizeof buffer, 0)) > 0;)
      all.emplace_back(buffer, static_cast<std::size_t>(n));
    return all;
  }

 private:
  int fd_;
};

using Heard = std::vector<std::string>;

}  // namespace

TEST_CASE("Service: the manager hears ready, what is done, life and the end") {
  const TempDir folder;
  for (const std::string& name :
       {(folder.path() / "notify").string(), "@rivulet-test-" + std::to_string(getpid())}) {
    CAPTURE(name);
    Listener listener(name);
    ServiceManager manager(name, std::chrono::seconds(8));
    manager.ready();
    CHECK(listener.heard() == Heard{"READY=1\nMAINPID=" + std::to_string(getpid())});
    manager.notify("forming: waiting for c");
    manager.notify("forming: waiting for c");
    manager.notify("two\nlines=1");
    CHECK(listener.heard() == Heard{"STATUS=forming: waiting for c", "STATUS=two lines=1"});
    const TimePoint start = TimePoint() + std::chrono::hours(1);
    for (int ms = 0; ms < 8000; ms += 20) manager.alive(start + std::chrono::milliseconds(ms));
    CHECK(listener.heard() == Heard{"WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1"});
    manager.stopping();
    CHECK(listener.heard() == Heard{"STOPPING=1"});
  }
}

TEST_CASE("Service: who is not watched does not beat, and who has no manager says nothing") {
  const TempDir folder;
  const auto name = (folder.path() / "notify").string();
  Listener listener(name);
  ServiceManager unwatched(name, Duration(0));
  unwatched.alive(TimePoint() + std::chrono::hours(1));
  CHECK(listener.heard().empty());
  for (const std::string& nobody : {std::string(), std::string("@"), std::string("relative"),
                                    std::string(200, '/'), (folder.path() / "gone").string()}) {
    CAPTURE(nobody.substr(0, 20));
    ServiceManager manager(nobody, std::chrono::seconds(1));
    manager.ready();
    manager.notify("x");
    manager.alive(TimePoint() + std::chrono::hours(1));
    manager.stopping();
  }
  CHECK(listener.heard().empty());
}

TEST_CASE("Service: a manager that does not read holds nobody up") {
  const TempDir folder;
  const auto name = (folder.path() / "notify").string();
  const Listener listener(name);
  ServiceManager manager(name, std::chrono::milliseconds(1));
  for (int i = 0; i < 10'000; ++i) manager.notify(std::to_string(i));
}
