#include "tests/support/process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <thread>

#include "tests/support/wait.h"

extern char** environ;  // NOLINT: POSIX says to declare it

namespace rivulet::testing {
namespace {

std::string reason(int error) {
  return std::system_category().message(error);
}

/// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& changes) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) all[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : changes) {
    if (value.empty()) {
      all.erase(name);
    } else {
      all[name] = value;
    }
  }
  std::vector<std::string> lines;
  for (const auto& [name, value] : all) lines.push_back(name + "=" + value);
  return lines;
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody here changes it
  std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    std::string candidate = std::string(rest.substr(0, colon)) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  }
  return {};
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// Everything that the child needs, prepared before fork(): after it only async-signal-safe calls are
/// allowed.
struct Launch {
  std::string program;
  std::string directory;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::vector<char*> argv;
  std::vector<char*> envp;
  int input = -1, output = -1, errors = -1, network = -1, report = -1;
  pid_t parent = 0;
};

[[noreturn]] void child_fails(const Launch& launch, int error) {
  [[maybe_unused]] const ssize_t written = ::write(launch.report, &error, sizeof error);
  ::_exit(127);
}

[[noreturn]] void become(const Launch& launch) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launch.parent) ::_exit(127);  // the parent died before prctl took effect
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  if (launch.network >= 0 && ::setns(launch.network, CLONE_NEWNET) != 0) child_fails(launch, errno);
  if (!launch.directory.empty() && ::chdir(launch.directory.c_str()) != 0) child_fails(launch, errno);
  if (::dup2(launch.input, 0) < 0 || ::dup2(launch.output, 1) < 0 || ::dup2(launch.errors, 2) < 0) {
    child_fails(launch, errno);
  }
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  ::execve(launch.program.c_str(), launch.argv.data(), launch.envp.data());
  child_fails(launch, errno);
}

/// Returns the pid, or the error of exec, which the child reports through a pipe.
Result<pid_t> launch_child(Launch& launch) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error{ErrorCode::io, "no pipe: " + reason(errno)};
  Descriptor reading(ends[0]);
  Descriptor writing(ends[1]);
  launch.report = writing.get();
  launch.parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return Error{ErrorCode::io, "cannot fork: " + reason(errno)};
  if (pid == 0) become(launch);
  writing.close();
  int error = 0;
  ssize_t got = 0;
  do {
    got = ::read(reading.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof error) return pid;
  ::waitpid(pid, nullptr, 0);
  return Error{ErrorCode::unavailable, "cannot start " + launch.program + ": " + reason(error)};
}

Result<Launch> prepare(const ProcessOptions& options) {
  if (options.command.empty()) return Error{ErrorCode::usage, "no command"};
  Launch launch;
  launch.program = find_program(options.command.front());
  if (launch.program.empty()) {
    return Error{ErrorCode::unavailable, options.command.front() + " is not installed (not in PATH)"};
  }
  launch.directory = options.directory.string();
  launch.arguments = options.command;
  launch.environment = merged_environment(options.environment);
  return launch;
}

}  // namespace

Process::Process(pid_t pid, std::unique_ptr<TempDir> files) : pid_(pid), files_(std::move(files)) {}

Result<std::unique_ptr<Process>> Process::start(const ProcessOptions& options) {
  Result<Launch> prepared = prepare(options);
  if (!prepared) return prepared.error();
  Launch& launch = prepared.value();
  launch.argv = pointers_to(launch.arguments);
  launch.envp = pointers_to(launch.environment);
  auto files = std::make_unique<TempDir>();
  const auto create = [&files](const char* name) {
    return ::open((files->path() / name).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  };
  const Descriptor input(::open(files->write("in", options.input).c_str(), O_RDONLY | O_CLOEXEC));
  const Descriptor output(create("out"));
  const Descriptor errors(create("err"));
  launch.input = input.get();
  launch.output = output.get();
  launch.errors = options.merge_errors ? output.get() : errors.get();
  const std::string network = "/run/netns/" + options.network_namespace;
  const Descriptor space(options.network_namespace.empty() ? -1
                                                           : ::open(network.c_str(), O_RDONLY | O_CLOEXEC));
  launch.network = space.get();
  if (!options.network_namespace.empty() && space.get() < 0) {
    return Error{ErrorCode::unavailable, "no network namespace " + network + ": " + reason(errno)};
  }
  const Result<pid_t> pid = launch_child(launch);
  if (!pid) return pid.error();
  return std::unique_ptr<Process>(new Process(pid.value(), std::move(files)));
}

Process::~Process() {
  send_signal_to_group(SIGKILL);
  if (!status_) ::waitpid(pid_, nullptr, 0);
}

bool Process::running() {
  return !wait(Duration::zero());
}

bool Process::runs_for(Duration time) {
  const RealClock clock;
  const TimePoint end = clock.now() + time;
  while (running()) {
    if (clock.now() >= end) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

std::optional<ExitStatus> Process::wait(Duration deadline) {
  const auto ended = [this] {
    if (status_) return true;
    int raw = 0;
    if (::waitpid(pid_, &raw, WNOHANG) != pid_) return false;
    status_ = WIFEXITED(raw) ? ExitStatus{WEXITSTATUS(raw), 0} : ExitStatus{-1, WTERMSIG(raw)};
    return true;
  };
  wait_until(ended, deadline);
  return status_;
}

void Process::send_signal(int signal) {
  if (!status_) ::kill(pid_, signal);
}

// The group outlives its leader while a child is left; its number is not reused before.
void Process::send_signal_to_group(int signal) {
  ::kill(-pid_, signal);
}

bool Process::wait_for_output(std::string_view text, Duration deadline) {
  const auto said = [this, text] {
    return output().find(text) != std::string::npos || errors().find(text) != std::string::npos;
  };
  bool found = false;
  wait_until(
      [&] {
        const bool ended = !running();  // first, so that its last output is included
        found = said();
        return found || ended;
      },
      deadline);
  return found;
}

std::string Process::output() const {
  return read_file(files_->path() / "out");
}
std::string Process::errors() const {
  return read_file(files_->path() / "err");
}
std::optional<ProcessStats> Process::stats() const {
  return read_process_stats(pid_);
}

RunOutput run(const ProcessOptions& options, Duration deadline) {
  Result<std::unique_ptr<Process>> started = Process::start(options);
  if (!started) return RunOutput{{127, 0}, false, {}, started.error().message + "\n"};
  Process& process = *started.value();
  RunOutput result;
  const std::optional<ExitStatus> status = process.wait(deadline);
  result.timed_out = !status;
  if (status) result.status = *status;
  result.output = process.output();
  result.errors = process.errors();
  return result;
}

}  // namespace rivulet::testing
