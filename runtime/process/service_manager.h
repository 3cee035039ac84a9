#pragma once
#include <string>
#include <string_view>

#include "core/time.h"

namespace rivulet::runtime {

/// Sends sd_notify(3) messages to a service manager: ready, status, alive, stopping. Without a socket all
/// calls do nothing. Never blocks, even if the manager does not read. Owner: the main thread.
class ServiceManager {
 public:
  /// `socket`: the value of NOTIFY_SOCKET, which is a path, or '@' and an abstract name; empty = none.
  /// `watchdog`: the manager kills this process if it receives no WATCHDOG message for this time; zero = no
  /// watchdog.
  ServiceManager(std::string socket, Duration watchdog);
  /// Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.
  static ServiceManager from_environment();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;
  ServiceManager(ServiceManager&& other) noexcept;
  ServiceManager& operator=(ServiceManager&&) = delete;
  ~ServiceManager();

  void ready();
  /// Sends one line for `systemctl status`, if it differs from the last one.
  void notify(std::string_view phrase);
  /// Cheap; call often. Sends up to four messages per watchdog interval.
  void alive(TimePoint now);
  void stopping();

 private:
  void send(const std::string& message) const;

  std::string socket_;
  Duration watchdog_;
  int fd_ = -1;
  std::string notified_;
  TimePoint next_beat_{};
};

}  // namespace rivulet::runtime
