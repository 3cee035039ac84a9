#pragma once
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rivulet::testing {

/// Threads of a process with this name that are runnable now.
std::vector<pid_t> running_threads(pid_t process, std::string_view name);

/// Address ranges of a process's code, without shared libraries (libc, loader, sanitizers). A thread paused
/// in those may hold a process-wide lock, such as malloc's.
class OwnCode {
 public:
  /// `files`: parts of the paths to include.
  OwnCode(pid_t process, const std::vector<std::string>& files);
  [[nodiscard]] bool holds(std::uint64_t address) const;
  [[nodiscard]] bool empty() const { return ranges_.empty(); }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;
};

/// Pauses one thread of a child process for the object's lifetime; other threads continue. Must be created
/// and destroyed on the same thread (ptrace).
class HeldThread {
 public:
  /// Blocks until the thread is paused: immediately, unless it is in an uninterruptible system call. nullptr:
  /// it has ended, or ptrace is not permitted.
  static std::unique_ptr<HeldThread> hold(pid_t thread);
  ~HeldThread();  ///< resumes the thread
  HeldThread(const HeldThread&) = delete;
  HeldThread& operator=(const HeldThread&) = delete;

  /// Address of its next instruction; 0 on an unsupported architecture.
  [[nodiscard]] std::uint64_t at() const;

 private:
  explicit HeldThread(pid_t thread) : thread_(thread) {}
  pid_t thread_;
};

}  // namespace rivulet::testing
