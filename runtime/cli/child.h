#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"

namespace rivulet::runtime::cli {

/// Another process of this binary. It runs in its own process group, so that Ctrl-C reaches only the parent.
/// Its environment has no RIVULET_*, so that only its arguments count. It is killed when this process exits
/// for any reason. Owner: the thread that started it; that thread must live as long as the child.
class Child {
 public:
  struct Spec {
    std::string name;                    ///< shown to users: "device-1"
    std::vector<std::string> arguments;  ///< after the program's name
    std::string output_file;             ///< stdout
    std::string log_file;                ///< stderr
  };
  /// Errors: io.
  static Result<Child> start(Spec spec);
  /// Restarts an exited child as a new process. Truncates its stdout file and appends to its stderr file.
  /// Errors: io.
  Status start_again(std::vector<std::string> arguments);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();  ///< kills a running child

  [[nodiscard]] const std::string& name() const noexcept { return spec_.name; }
  [[nodiscard]] int pid() const noexcept { return pid_; }  ///< of the running or last process
  /// Returns the exit code (128 + n after signal n); nullopt while the child runs. Never waits.
  [[nodiscard]] std::optional<int> exit_code();
  /// Returns the signal that killed the child; nullopt while it runs or after a normal exit.
  [[nodiscard]] std::optional<int> ended_by_signal();
  void signal(int number) noexcept;
  /// Return the last or first lines that the child wrote, for reports about its exit and for its result.
  [[nodiscard]] std::vector<std::string> last_log_lines(std::size_t count) const;
  [[nodiscard]] std::string last_output_line() const;
  [[nodiscard]] std::string first_output_line() const;

 private:
  Child(Spec spec, int pid) : spec_(std::move(spec)), pid_(pid) {}
  Spec spec_;
  int pid_ = -1;
  std::optional<int> exit_code_;
  std::optional<int> signal_;
};

/// Sends SIGTERM to all children. Sends SIGKILL to those still running after `patience_s` or once `hurry`
/// returns true. Returns when all have exited.
void end_all(std::vector<Child*> children, double patience_s, const std::function<bool()>& hurry);

/// Waits for `milliseconds`, or until a signal arrives. For commands.
void pause_ms(int milliseconds) noexcept;

}  // namespace rivulet::runtime::cli
