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

/// Threads of a process that are called `name` and want a core at this moment.
std::vector<pid_t> running_threads(pid_t process, std::string_view name);

/// Where the machine code of a process lies that is not a library's for everybody (libc, its loader, a
/// sanitizer): a thread that stands still in those may hold a lock of the whole process, as that of malloc,
/// in anything it does.
class OwnCode {
 public:
  /// `files`: parts of the paths that count.
  OwnCode(pid_t process, const std::vector<std::string>& files);
  [[nodiscard]] bool holds(std::uint64_t address) const;
  [[nodiscard]] bool empty() const { return ranges_.empty(); }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;
};

/// One thread of a child process that stands still while this object lives; the others go on. Made and ended
/// by the same thread of ours (ptrace).
class HeldThread {
 public:
  /// Blocks until it stands: at once, unless the kernel does something for it that nothing interrupts.
  /// nullptr: it has ended, or this process may not hold it.
  static std::unique_ptr<HeldThread> hold(pid_t thread);
  ~HeldThread();  ///< it goes on
  HeldThread(const HeldThread&) = delete;
  HeldThread& operator=(const HeldThread&) = delete;

  /// The next instruction that it will execute; 0 if this machine's registers are not known here.
  [[nodiscard]] std::uint64_t at() const;

 private:
  explicit HeldThread(pid_t thread) : thread_(thread) {}
  pid_t thread_;
};

}  // namespace rivulet::testing
