#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "tests/support/temp_dir.h"

namespace rivulet::testing {

struct ProcessOptions {
  std::vector<std::string> command;                ///< program (looked up in PATH) and its arguments
  std::map<std::string, std::string> environment;  ///< on top of ours; an empty value removes the variable
  std::filesystem::path directory;                 ///< working folder; empty: ours
  std::string input;                               ///< what it reads from standard input
  std::string network_namespace;                   ///< a name of `ip netns`; empty: ours
  bool merge_errors = false;                       ///< standard error goes where standard output goes
};

struct ExitStatus {
  int code = -1;   ///< exit code, or -1 when a signal ended it
  int signal = 0;  ///< the signal that ended it, or 0
};

/// What /proc says about a running process.
struct ProcessStats {
  double cpu_seconds = 0;
  std::int64_t rss_bytes = 0;
  std::int64_t peak_rss_bytes = 0;
  int threads = 0;
  int open_files = 0;
  char state = '?';  ///< R running, S sleeping, T stopped, Z ended, ...
};

/// One child process in its own process group, its output captured in files. It dies with this object, and
/// with the test program itself. Used by the thread that made it.
class Process {
 public:
  /// Errors: unavailable (no such program, no such namespace), io.
  static Result<std::unique_ptr<Process>> start(const ProcessOptions& options);
  ~Process();  ///< SIGKILL to the whole group
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] bool running();
  /// True when it is still there after this time, which no slack makes longer; returns at its end.
  bool runs_for(Duration time);
  /// The status when it has ended within the deadline.
  std::optional<ExitStatus> wait(Duration deadline);
  void send_signal(int signal);           ///< to the process
  void send_signal_to_group(int signal);  ///< to it and its children, as Ctrl-C on a terminal does
  /// True when standard output or error held `text` before the deadline and before the end.
  bool wait_for_output(std::string_view text, Duration deadline);
  [[nodiscard]] std::string output() const;  ///< standard output so far
  [[nodiscard]] std::string errors() const;  ///< standard error so far
  [[nodiscard]] std::optional<ProcessStats> stats() const;

 private:
  explicit Process(pid_t pid, std::unique_ptr<TempDir> files);
  pid_t pid_;
  std::unique_ptr<TempDir> files_;
  std::optional<ExitStatus> status_;
};

/// Process::stats for a process that somebody else started.
std::optional<ProcessStats> read_process_stats(pid_t pid);
/// Processes whose parent is `pid`.
std::vector<pid_t> children_of(pid_t pid);

struct RunOutput {
  ExitStatus status;
  bool timed_out = false;
  std::string output;
  std::string errors;
};
/// Starts, waits and collects; a process that is still there at the deadline is killed.
RunOutput run(const ProcessOptions& options, Duration deadline);

/// A TCP port of 127.0.0.1 that nobody listens on, below the range that the kernel gives to clients.
int free_port();

}  // namespace rivulet::testing
