#include "tests/support/strangers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

namespace rivulet::testing {
namespace {

constexpr auto look_again = std::chrono::milliseconds(20);
constexpr std::size_t guests_max = 1200;
constexpr std::uint64_t manners = 3;  // silent, random bytes, slow bytes

std::set<std::string> sockets_of(pid_t pid) {
  std::set<std::string> inodes;
  std::error_code error;
  const std::filesystem::path folder = "/proc/" + std::to_string(pid) + "/fd";
  for (auto it = std::filesystem::directory_iterator(folder, error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(it->path(), gone).string();
    if (target.starts_with("socket:[")) inodes.insert(target.substr(8, target.size() - 9));
  }
  return inodes;
}

}  // namespace

// Lines of /proc/PID/net/tcp: "sl: local remote state tx:rx tr:when retransmits uid timeout inode ...".
std::set<int> listening_ports(pid_t pid) {
  const auto sockets = sockets_of(pid);
  std::set<int> ports;
  std::ifstream table("/proc/" + std::to_string(pid) + "/net/tcp");
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::array<std::string, 10> field;
    for (auto& word : field) words >> word;
    const auto colon = field[1].find(':');
    if (field[3] == "0A" && colon != std::string::npos && sockets.contains(field[9]))
      ports.insert(std::stoi(field[1].substr(colon + 1), nullptr, 16));
  }
  return ports;
}

Strangers::Strangers(std::set<int> spared, std::uint64_t seed)
    : spared_(std::move(spared)), rng_(Rng::derive(seed, "strangers")), thread_([this] { run(); }) {}

Strangers::~Strangers() {
  stop_ = true;
  thread_.join();
  for (const auto& guest : received_) ::close(guest.fd);
}

void Strangers::visit(std::vector<pid_t> pids) {
  const std::lock_guard lock(mutex_);
  pids_ = std::move(pids);
}

void Strangers::run() {
  while (!stop_) {
    std::vector<pid_t> pids;
    {
      const std::lock_guard lock(mutex_);
      pids = pids_;
    }
    const int crowd = crowd_.exchange(0);
    for (const pid_t pid : pids)
      for (const int port : listening_ports(pid))
        if (!spared_.contains(port)) call_on(port, std::max(1, crowd));
    std::erase_if(received_, [this](Guest& guest) {
      if (misbehave(guest)) return false;
      ::close(guest.fd);
      return true;
    });
    std::this_thread::sleep_for(look_again);
  }
}

void Strangers::call_on(int port, int connections) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; i < connections && received_.size() < guests_max; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return;
    // A blocked port may not answer: do not wait for it.
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 && errno != EINPROGRESS) {
      ::close(fd);
      return;
    }
    ++called_;
    received_.push_back({fd, port, rng_.below(manners)});
  }
}

/// False: this connection is done or was closed by the peer.
bool Strangers::misbehave(Guest& guest) {
  std::array<std::uint64_t, 64> bytes{};
  for (auto& word : bytes) word = rng_.next();
  const std::size_t n = guest.manner == 0 ? 0 : guest.manner == 1 ? sizeof bytes : 1;
  if (n > 0 && ::send(guest.fd, bytes.data(), n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN)
    return false;
  const auto came = ::recv(guest.fd, bytes.data(), sizeof bytes, MSG_DONTWAIT);
  return (came > 0 || (came < 0 && errno == EAGAIN)) && rng_.below(100) != 0;
}

}  // namespace rivulet::testing
