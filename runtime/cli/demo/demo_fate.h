#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace rivulet::runtime::cli {

/// Maximum restarts of one device before its exit counts as a failure.
inline constexpr int restarts_most = 20;

/// How a device's process exited.
struct DeviceEnd {
  int code = 0;               ///< exit code if no signal killed it
  std::optional<int> signal;  ///< signal that killed it
  bool intended = false;      ///< the demo itself killed or stopped it
  bool missed = false;        ///< others wait for it to form a group
  int restarts = 0;           ///< earlier restarts
};

enum class Fate : std::uint8_t {
  done,         ///< exited as intended
  start_again,  ///< killed or stopped alone; the group waits for it
  fatal,        ///< failed by itself, or was killed too often
};

/// Decides how the demo reacts. Signals caused by the program itself (SIGSEGV, SIGABRT, ...) are fatal,
/// because a restart would hide a bug.
Fate fate_of(const DeviceEnd& end);

/// "device-2 (pid 123) was killed; restarting it"
std::string words_of_end(const std::string& name, int pid, const DeviceEnd& end);

}  // namespace rivulet::runtime::cli
