// Processes and ports, from the kernel.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <fstream>
#include <sstream>
#include <system_error>

#include "core/check.h"
#include "core/rng.h"
#include "tests/support/process.h"

namespace rivulet::testing {
namespace {

namespace fs = std::filesystem;

/// The number after `key:` in /proc/PID/status, in the unit used there; 0 if missing.
std::int64_t status_field(const std::string& status, const std::string& key) {
  const std::size_t at = status.find(key + ":");
  if (at == std::string::npos) return 0;
  std::istringstream text(status.substr(at + key.size() + 1));
  std::int64_t value = 0;
  text >> value;
  return value;
}

int count_entries(const fs::path& folder) {
  std::error_code error;
  int count = 0;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) ++count;
  return count;
}

bool can_listen(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  RIVULET_CHECK(fd >= 0, "no socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  const bool bound = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return bound;
}

}  // namespace

std::optional<ProcessStats> read_process_stats(pid_t pid) {
  const fs::path folder = "/proc/" + std::to_string(pid);
  const std::string stat = read_file(folder / "stat");
  const std::size_t after_name = stat.rfind(") ");  // a program's name may contain parentheses
  if (after_name == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(after_name + 2));
  ProcessStats stats;
  std::string skipped;
  std::int64_t user = 0;
  std::int64_t system = 0;
  fields >> stats.state;
  for (int i = 0; i < 10; ++i) fields >> skipped;
  fields >> user >> system;
  stats.cpu_seconds = static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const std::string status = read_file(folder / "status");
  stats.rss_bytes = status_field(status, "VmRSS") * 1024;
  stats.peak_rss_bytes = status_field(status, "VmHWM") * 1024;
  stats.threads = static_cast<int>(status_field(status, "Threads"));
  stats.open_files = count_entries(folder / "fd");
  return stats;
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    pid_t candidate = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), candidate);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    if (status_field(read_file(entry.path() / "status"), "PPid") == pid) children.push_back(candidate);
  }
  return children;
}

// Returns ports in sequence, from a start that differs between concurrent test programs: a returned port that
// has no listener yet must not be returned again.
int free_port() {
  constexpr int first = 20000;
  constexpr int count = 12000;
  static std::atomic<std::uint64_t> next{Rng(static_cast<std::uint64_t>(::getpid())).next()};
  for (int tries = 0; tries < count; ++tries) {
    const int port = first + static_cast<int>(next.fetch_add(1) % count);
    if (can_listen(port)) return port;
  }
  RIVULET_CHECK(false, "no free port");
  return 0;
}

}  // namespace rivulet::testing
