#include "devices/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <system_error>

#include "core/clock.h"

namespace rivulet::devices {
namespace {

constexpr int look_every_ms = 20;
constexpr std::size_t said_max = std::size_t{16} << 20U;
constexpr char good = '+';  // else the byte is an ErrorCode

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno != EINTR) _exit(1);
    bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  }
}

/// Body of the subprocess.
[[noreturn]] void serve_parent(const std::function<Result<std::string>()>& body, int out, pid_t parent) {
  // Terminals and service managers send these to both processes; the parent handles them.
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) std::signal(number, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // the parent has ended already
  const auto said = body();
  write_all(out, said ? std::string(1, good) + said.value()
                      : static_cast<char>(said.error().code) + said.error().message);
  _exit(0);
}

bool stop_requested(const Patience& patience) {
  return patience.stop != nullptr && patience.stop->load() > 0;
}

/// Reads until the other end closes.
Result<std::string> receive_reply(int fd, const Patience& patience) {
  const RealClock clock;
  const TimePoint end = clock.now() + patience.deadline;
  std::string said;
  while (said.size() < said_max) {
    if (stop_requested(patience)) return Error{ErrorCode::cancelled, "stop requested"};
    if (clock.now() >= end) return Error{ErrorCode::timed_out, "no answer"};
    pollfd ready{fd, POLLIN, 0};
    if (poll(&ready, 1, look_every_ms) <= 0) continue;
    char part[4096];
    const ssize_t n = read(fd, part, sizeof part);
    if (n == 0) return said;
    if (n > 0) said.append(part, static_cast<std::size_t>(n));
  }
  return Error{ErrorCode::protocol, "its answer exceeds 16 MiB"};
}

Result<std::string> parse_reply(std::string said, int status) {
  if (WIFSIGNALED(status)) {
    const char* name = sigdescr_np(WTERMSIG(status));
    // The system sends SIGKILL when memory runs out; other signals are faults of body.
    const auto code = WTERMSIG(status) == SIGKILL ? ErrorCode::unavailable : ErrorCode::protocol;
    return Error{code, std::string("was killed by a signal: ") + (name != nullptr ? name : "unknown")};
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || said.empty())
    return Error{ErrorCode::protocol, "exited without a result"};
  const char first = said.front();
  said.erase(0, 1);
  if (first == good) return said;
  return Error{static_cast<ErrorCode>(first), std::move(said)};
}

}  // namespace

Result<std::string> run_in_subprocess(const std::function<Result<std::string>()>& body,
                                      const Patience& patience) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Error{ErrorCode::unavailable,
                 std::string("cannot create a pipe: ") + std::generic_category().message(errno)};
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) serve_parent(body, ends[1], parent);
  const int reason = errno;
  close(ends[1]);
  auto said = child > 0 ? receive_reply(ends[0], patience)
                        : Error{ErrorCode::unavailable, std::string("cannot create a process: ") +
                                                            std::generic_category().message(reason)};
  close(ends[0]);
  if (child < 0) return said;
  if (!said) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return said ? parse_reply(std::move(said).value(), status) : said;
}

}  // namespace rivulet::devices
