#pragma once
#include <string>
#include <string_view>

#include "core/time.h"

namespace rivulet::runtime {

/// Notifications to a service manager, by the protocol of sd_notify(3): that this process serves, what
/// it does, that it is alive, that it ends. Without a socket every call does nothing; who does not listen
/// costs nothing either, for nothing here waits. Owner: the main thread.
class ServiceManager {
 public:
  /// `socket`: NOTIFY_SOCKET, a path, or an abstract name behind '@'; empty = nobody asks. `watchdog`: how
  /// long it may hear nothing of alive() before it ends this process; zero = it does not watch.
  ServiceManager(std::string socket, Duration watchdog);
  /// Of NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.
  static ServiceManager from_environment();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;
  ServiceManager(ServiceManager&& other) noexcept;
  ServiceManager& operator=(ServiceManager&&) = delete;
  ~ServiceManager();

  void ready();
  /// One line for `systemctl status`; sent when it is another than before.
  void say(std::string_view phrase);
  /// Called often; heard four times in each watchdog interval.
  void alive(TimePoint now);
  void stopping();

 private:
  void send(const std::string& message) const;

  std::string socket_;
  Duration watchdog_;
  int fd_ = -1;
  std::string said_;
  TimePoint next_beat_{};
};

}  // namespace rivulet::runtime
