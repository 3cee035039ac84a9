#include "runtime/cli/demo/demo_fate.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>

namespace rivulet::runtime::cli {
namespace {

bool by_own_fault(int signal) {
  static constexpr std::array faults{SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGPIPE};
  return std::find(faults.begin(), faults.end(), signal) != faults.end();
}

}  // namespace

Fate fate_of(const DeviceEnd& end) {
  if (end.intended && (end.signal == SIGKILL || (!end.signal && end.code == 0))) return Fate::done;
  if (!end.signal && end.code != 0) return Fate::fatal;
  if (end.signal && by_own_fault(*end.signal)) return Fate::fatal;
  if (!end.signal && !end.missed) return Fate::done;
  return end.restarts < restarts_most ? Fate::start_again : Fate::fatal;
}

std::string words_of_end(const std::string& name, int pid, const DeviceEnd& end) {
  const auto how = !end.signal              ? std::string("has exited")
                   : *end.signal == SIGKILL ? std::string("was killed")
                                            : fmt::format("was killed by signal {}", *end.signal);
  return fmt::format("{} (pid {}) {}; restarting it", name, pid, how);
}

}  // namespace rivulet::runtime::cli
