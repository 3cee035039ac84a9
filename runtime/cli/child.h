#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"

namespace rivulet::runtime::cli {

/// Another process of this same binary. It has a process group of its own (so that Ctrl-C reaches only its
/// parent, who decides), an environment without RIVULET_* (so that only its arguments count), and dies with
/// this process, however this one dies. Owner: the thread that started it; that thread must live as long as
/// the child.
class Child {
 public:
  struct Spec {
    std::string name;                    ///< for people: "device-1"
    std::vector<std::string> arguments;  ///< behind the program's name
    std::string output_file;             ///< stdout
    std::string log_file;                ///< stderr
  };
  /// Errors: io.
  static Result<Child> start(Spec spec);
  /// The same once more, after it has ended: a new process, its stdout begins anew, its stderr is appended
  /// to what is there. Errors: io.
  Status start_again(std::vector<std::string> arguments);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();  ///< kills what still runs

  [[nodiscard]] const std::string& name() const noexcept { return spec_.name; }
  [[nodiscard]] int pid() const noexcept { return pid_; }  ///< while it runs, and of the one that ended last
  /// Its exit code once it ended (128 + n if signal n ended it); nullopt while it runs. Never waits.
  [[nodiscard]] std::optional<int> exit_code();
  /// The signal that ended it; nullopt while it runs, and if it ended by itself.
  [[nodiscard]] std::optional<int> ended_by_signal();
  void signal(int number) noexcept;
  /// What it wrote last. For reports about its death, and for its result line.
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

/// SIGTERM to all, SIGKILL to those that stay after `patience_s`, or once `hurry` is set. Returns when all
/// have ended.
void end_all(std::vector<Child*> children, double patience_s, const std::function<bool()>& hurry);

/// The only way commands wait: milliseconds, or shorter if a signal comes.
void pause_ms(int milliseconds) noexcept;

}  // namespace rivulet::runtime::cli
