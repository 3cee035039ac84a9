#include "runtime/process/stack_dump.h"

#include <execinfo.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string_view>

#include "core/check.h"
#include "runtime/process/exit_code.h"

namespace rivulet::runtime {
namespace {

constexpr std::size_t threads_max = 256;
constexpr long answer_ns = 100'000'000;  // time limit per thread

using Answer = std::atomic<std::uint32_t>;
constexpr std::uint32_t asked = 1;
constexpr std::uint32_t answered = 2;

int dump_signal() noexcept {
  return SIGRTMIN + 7;
}

void write_text(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t n = write(STDERR_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

// The signal carries the address of the answer, so no global is needed.
void on_dump(int, siginfo_t* info, void*) {
  if (info->si_code != SI_QUEUE || info->si_pid != getpid()) return;
  auto& answer = *static_cast<Answer*>(info->si_value.sival_ptr);
  if (answer.load(std::memory_order_acquire) != asked) return;  // pairs with ask()
  const int saved = errno;
  std::array<void*, 64> frames{};
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  backtrace_symbols_fd(frames.data(), count, STDERR_FILENO);
  answer.store(answered, std::memory_order_release);
  syscall(SYS_futex, &answer, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  errno = saved;
}

[[noreturn]] void leave(int) {
  _exit(static_cast<int>(ExitCode::watchdog));
}

void leave_after(Duration limit) noexcept {
  struct sigaction action{};
  action.sa_handler = leave;
  sigemptyset(&action.sa_mask);
  sigaction(SIGALRM, &action, nullptr);
  sigset_t alarm_only;
  sigemptyset(&alarm_only);
  sigaddset(&alarm_only, SIGALRM);
  pthread_sigmask(SIG_UNBLOCK, &alarm_only, nullptr);
  const long microseconds = std::max(1L, static_cast<long>(limit.count() / 1000));
  const itimerval timer{{0, 0}, {microseconds / 1'000'000, microseconds % 1'000'000}};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

/// Writes "--- thread 1234 train".
void write_heading(int tid) noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/comm", tid);
  char name[32] = "?\n";
  if (const int file = open(path, O_RDONLY | O_CLOEXEC); file >= 0) {
    if (const ssize_t n = read(file, name, sizeof name - 1); n > 0) name[n] = '\0';
    close(file);
  }
  char line[96];
  const int size = std::snprintf(line, sizeof line, "--- thread %d %s", tid, name);
  write_text({line, static_cast<std::size_t>(size)});
}

bool ask(int tid, Answer& answer) noexcept {
  siginfo_t info{};
  info.si_signo = dump_signal();
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_ptr = &answer;
  answer.store(asked, std::memory_order_release);
  return syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, dump_signal(), &info) == 0;
}

void dump_thread(int tid, Answer& answer) noexcept {
  write_heading(tid);
  if (!ask(tid, answer)) return write_text("    (the thread has ended)\n");
  const timespec timeout{0, answer_ns};
  while (answer.load(std::memory_order_acquire) == asked) {
    const long rc = syscall(SYS_futex, &answer, FUTEX_WAIT_PRIVATE, asked, &timeout, nullptr, 0);
    if (rc != 0 && errno == ETIMEDOUT)
      return write_text("    (no answer: the thread blocks signals or waits in the kernel)\n");
  }
}

/// A directory entry as returned by getdents64.
struct KernelEntry {
  std::uint64_t inode;
  std::int64_t offset;
  unsigned short bytes;
  unsigned char type;
  char name[1];
};

/// Lists thread ids like readdir(), without allocating.
std::size_t list_threads(std::array<int, threads_max>& out) noexcept {
  const int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::size_t count = 0;
  alignas(KernelEntry) char buffer[4096];
  for (long n = 0; (n = syscall(SYS_getdents64, folder, buffer, sizeof buffer)) > 0;) {
    for (long at = 0; at < n;) {
      const auto* entry = reinterpret_cast<const KernelEntry*>(buffer + at);
      const char* name = buffer + at + offsetof(KernelEntry, name);
      int tid = 0;
      const bool number = std::from_chars(name, name + std::strlen(name), tid).ec == std::errc{};
      if (number && count < out.size()) out[count++] = tid;
      at += entry->bytes;
    }
  }
  close(folder);
  return count;
}

}  // namespace

void prepare_stack_dump() {
  void* frame = nullptr;
  backtrace(&frame, 1);  // the first call loads libgcc
  struct sigaction action{};
  action.sa_sigaction = on_dump;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  RIVULET_CHECK(sigaction(dump_signal(), &action, nullptr) == 0, "cannot install a signal handler");
}

void dump_stacks_and_exit(const std::string& why, Duration limit) noexcept {
  leave_after(limit);
  write_text(why);
  write_text("\n");
  std::array<int, threads_max> tids{};
  std::array<Answer, threads_max> answers{};  // one per thread: a late answer must not count for another
  const std::size_t count = list_threads(tids);
  for (std::size_t i = 0; i < count; ++i) dump_thread(tids[i], answers[i]);
  leave(0);
}

}  // namespace rivulet::runtime
