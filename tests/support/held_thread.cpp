#include "tests/support/held_thread.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace rivulet::testing {
namespace {

namespace fs = std::filesystem;

/// Waits until the thread is stopped by our request; forwards earlier signals to it. False: it has ended.
bool has_stopped(pid_t thread) {
  for (int status = 0; waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status);) {
    if (status >> 16 == PTRACE_EVENT_STOP) return true;
    ptrace(PTRACE_CONT, thread, nullptr, WSTOPSIG(status));
  }
  return false;
}

}  // namespace

std::vector<pid_t> running_threads(pid_t process, std::string_view name) {
  std::vector<pid_t> found;
  std::error_code gone;
  const fs::path tasks = "/proc/" + std::to_string(process) + "/task";
  for (fs::directory_iterator it(tasks, gone), end; !gone && it != end; it.increment(gone)) {
    std::ifstream file(it->path() / "stat");
    std::string line;
    std::getline(file, line);  // tid (name) state ...
    const auto open = line.find('(');
    const auto close = line.rfind(") ");
    if (open == std::string::npos || close == std::string::npos || close + 2 >= line.size()) continue;
    if (line.substr(open + 1, close - open - 1) == name && line[close + 2] == 'R')
      found.push_back(std::stoi(line));
  }
  return found;
}

OwnCode::OwnCode(pid_t process, const std::vector<std::string>& files) {
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream in(line);
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    char dash = 0;
    std::string rights;
    in >> std::hex >> begin >> dash >> end >> rights;
    const bool own = std::ranges::any_of(
        files, [&](const std::string& file) { return line.find(file) != std::string::npos; });
    if (own && rights.find('x') != std::string::npos) ranges_.emplace_back(begin, end);
  }
}

bool OwnCode::holds(std::uint64_t address) const {
  return std::ranges::any_of(
      ranges_, [&](const auto& range) { return address >= range.first && address < range.second; });
}

std::unique_ptr<HeldThread> HeldThread::hold(pid_t thread) {
  if (ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) return nullptr;
  if (ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0 || !has_stopped(thread)) return nullptr;
  return std::unique_ptr<HeldThread>(new HeldThread(thread));
}

HeldThread::~HeldThread() {
  ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
}

std::uint64_t HeldThread::at() const {
  user_regs_struct registers{};
  iovec into{&registers, sizeof registers};
  if (ptrace(PTRACE_GETREGSET, thread_, NT_PRSTATUS, &into) != 0) return 0;
#if defined(__x86_64__)
  return registers.rip;
#elif defined(__aarch64__)
  return registers.pc;
#else
  return 0;
#endif
}

}  // namespace rivulet::testing
