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
  std::vector<std::string> command;                ///< program (looked up in PATH) and arguments
  std::map<std::string, std::string> environment;  ///< added to ours; an empty value removes the variable
  std::filesystem::path directory;                 ///< working folder; empty: ours
  std::string input;                               ///< standard input
  std::string network_namespace;                   ///< a name from `ip netns`; empty: ours
  bool merge_errors = false;                       ///< redirects standard error to standard output
};

struct ExitStatus {
  int code = -1;   ///< exit code, or -1 if ended by a signal
  int signal = 0;  ///< the signal that ended it, or 0
};

/// Values from /proc for a running process.
struct ProcessStats {
  double cpu_seconds = 0;
  std::int64_t rss_bytes = 0;
  std::int64_t peak_rss_bytes = 0;
  int threads = 0;
  int open_files = 0;
  char state = '?';  ///< R running, S sleeping, T stopped, Z ended, ...
};

/// A child process in its own process group, with output captured in files. It ends with this object, and
/// with the test program. Owner: the creating thread.
class Process {
 public:
  /// Errors: unavailable (program or namespace missing), io.
  static Result<std::unique_ptr<Process>> start(const ProcessOptions& options);
  ~Process();  ///< sends SIGKILL to the whole group
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] bool running();
  /// Returns true if it still runs after this time, which deadline_slack does not extend; returns early at
  /// its end.
  bool runs_for(Duration time);
  /// Returns the status if it ended within the deadline.
  std::optional<ExitStatus> wait(Duration deadline);
  void send_signal(int signal);           ///< to the process
  void send_signal_to_group(int signal);  ///< to it and its children, as Ctrl-C on a terminal
  /// Returns true if output or errors contained `text` before the deadline and before the end.
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

/// Process::stats for any process.
std::optional<ProcessStats> read_process_stats(pid_t pid);
/// Children of `pid`.
std::vector<pid_t> children_of(pid_t pid);

struct RunOutput {
  ExitStatus status;
  bool timed_out = false;
  std::string output;
  std::string errors;
};
/// Starts, waits and collects output; kills the process at the deadline.
RunOutput run(const ProcessOptions& options, Duration deadline);

/// A free TCP port of 127.0.0.1, below the kernel's ephemeral range.
int free_port();

}  // namespace rivulet::testing
