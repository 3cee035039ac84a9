#include "runtime/cli/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "core/clock.h"

extern char** environ;

namespace rivulet::runtime::cli {
namespace {

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (auto& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_for_child() {
  std::vector<std::string> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!text.starts_with("RIVULET_")) kept.push_back(text);
  }
  return kept;
}

/// Runs between fork and exec: only async-signal-safe calls, no allocation.
[[noreturn]] void become(int parent, int out, int log, char* const* arguments, char* const* environment) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // the parent died before prctl(): nothing would stop this process
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::execve("/proc/self/exe", arguments, environment);
  ::_exit(127);
}

int open_for_output(const std::string& path, int how) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how, 0644);
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

/// Returns the new process's pid. `log_how`: open flag for an existing log, O_TRUNC or O_APPEND.
Result<int> launch(const Child::Spec& spec, int log_how) {
  auto arguments = spec.arguments;
  arguments.insert(arguments.begin(), "rivulet");
  auto environment = environment_for_child();
  const auto argument_pointers = pointers_to(arguments);
  const auto environment_pointers = pointers_to(environment);
  const int out = open_for_output(spec.output_file, O_TRUNC);
  const int log = open_for_output(spec.log_file, log_how);
  const int parent = ::getpid();
  const int pid = out < 0 || log < 0 ? -1 : ::fork();
  if (pid == 0) become(parent, out, log, argument_pointers.data(), environment_pointers.data());
  const int error = errno;
  if (out >= 0) ::close(out);
  if (log >= 0) ::close(log);
  if (pid < 0) {
    return Error{ErrorCode::io,
                 fmt::format("cannot start {}: {}", spec.name, std::generic_category().message(error))};
  }
  ::setpgid(pid, pid);  // parent and child both do it; the first call counts
  return pid;
}

}  // namespace

Result<Child> Child::start(Spec spec) {
  const auto pid = launch(spec, O_TRUNC);
  if (!pid) return pid.error();
  return Child(std::move(spec), pid.value());
}

Status Child::start_again(std::vector<std::string> arguments) {
  spec_.arguments = std::move(arguments);
  const auto pid = launch(spec_, O_APPEND);
  if (!pid) return pid.error();
  pid_ = pid.value();
  exit_code_.reset();
  signal_.reset();
  return ok();
}

Child::Child(Child&& other) noexcept
    : spec_(std::move(other.spec_)),
      pid_(std::exchange(other.pid_, -1)),
      exit_code_(other.exit_code_),
      signal_(other.signal_) {}

Child::~Child() {
  if (pid_ < 0 || exit_code()) return;
  signal(SIGKILL);
  while (!exit_code()) pause_ms(5);
}

std::optional<int> Child::exit_code() {
  if (exit_code_ || pid_ < 0) return exit_code_;
  int status = 0;
  const int result = ::waitpid(pid_, &status, WNOHANG);
  if (result == 0 || (result < 0 && errno == EINTR)) return std::nullopt;
  if (result < 0) {
    exit_code_ = 1;  // reaped elsewhere; exit code unknown
  } else {
    if (WIFSIGNALED(status)) signal_ = WTERMSIG(status);
    exit_code_ = signal_ ? 128 + *signal_ : WEXITSTATUS(status);
  }
  return exit_code_;
}

std::optional<int> Child::ended_by_signal() {
  return exit_code() ? signal_ : std::nullopt;
}

void Child::signal(int number) noexcept {
  if (pid_ > 0 && !exit_code_) ::kill(-pid_, number);
}

std::vector<std::string> Child::last_log_lines(std::size_t count) const {
  auto lines = lines_of(spec_.log_file);
  if (lines.size() > count) lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(count));
  return lines;
}

std::string Child::last_output_line() const {
  const auto lines = lines_of(spec_.output_file);
  return lines.empty() ? "" : lines.back();
}

std::string Child::first_output_line() const {
  std::ifstream file(spec_.output_file);
  std::string line;
  // Only complete lines count: the child may be writing this one.
  return std::getline(file, line) && !file.eof() ? line : "";
}

void end_all(std::vector<Child*> children, double patience_s, const std::function<bool()>& hurry) {
  const RealClock clock;
  const auto patient_until = clock.now() + from_seconds(patience_s);
  for (auto* child : children) child->signal(SIGTERM);
  bool killed = false;
  for (;;) {
    std::erase_if(children, [](Child* child) { return child->exit_code().has_value(); });
    if (children.empty()) return;
    if (!killed && (hurry() || clock.now() >= patient_until)) {
      for (auto* child : children) child->signal(SIGKILL);
      killed = true;
    }
    pause_ms(20);
  }
}

void pause_ms(int milliseconds) noexcept {
  ::poll(nullptr, 0, milliseconds);
}

}  // namespace rivulet::runtime::cli
