#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace rivulet::runtime::cli {

/// How often the demo starts one device again before it takes its deaths for a failure.
inline constexpr int restarts_most = 20;

/// How a process of the demo's devices ended.
struct DeviceEnd {
  int code = 0;               ///< its exit code, if no signal ended it
  std::optional<int> signal;  ///< that ended it
  bool missed = false;        ///< others are there and cannot form a group without it
  int restarts = 0;           ///< how often it was started again before
};

enum class Fate : std::uint8_t {
  done,         ///< it ended as it should
  start_again,  ///< somebody pulled its plug, or asked it alone to go: the group waits for it
  fatal,        ///< it failed by itself, or too often
};

/// What the demo does about it. A signal by which a program dies of its own fault (SIGSEGV, SIGABRT, ...) is
/// fatal: starting again would hide a bug.
Fate fate_of(const DeviceEnd& end);

/// "device-2 (pid 123) was killed; starting it again"
std::string words_of_end(const std::string& name, int pid, const DeviceEnd& end);

}  // namespace rivulet::runtime::cli
