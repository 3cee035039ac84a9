#pragma once
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "core/rng.h"

namespace rivulet::testing {

/// TCP ports on which a process listens.
std::set<int> listening_ports(pid_t pid);

/// Connects to all ports of 127.0.0.1 on which some processes listen, and misbehaves: sends nothing, random
/// bytes, or one byte at a time. Runs on its own thread.
class Strangers {
 public:
  /// `spared`: ports to leave alone.
  Strangers(std::set<int> spared, std::uint64_t seed);
  ~Strangers();
  Strangers(const Strangers&) = delete;
  Strangers& operator=(const Strangers&) = delete;
  void visit(std::vector<pid_t> pids);  ///< replaces the visited processes
  /// Opens N connections to each port at once, at the next look.
  void crowd(int connections) { crowd_ = connections; }
  [[nodiscard]] int called() const { return called_; }  ///< so far, accepted or not

 private:
  struct Guest {
    int fd = -1;
    int port = 0;
    std::uint64_t manner = 0;
  };
  void run();
  void call_on(int port, int connections);
  bool misbehave(Guest& guest);

  const std::set<int> spared_;
  Rng rng_;
  std::vector<Guest> received_;
  std::mutex mutex_;
  std::vector<pid_t> pids_;
  std::atomic<int> crowd_{0};
  std::atomic<int> called_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace rivulet::testing
