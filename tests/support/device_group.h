#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tests/support/network.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"

/// Runs the real binary as processes: a broker, a feeder and devices. For tests of a group in which a device
/// fails. A failure of a helper fails the test (REQUIRE).
namespace rivulet::testing {

/// Starts `rivulet ARGUMENTS`.
std::unique_ptr<Process> start_rivulet(const std::vector<std::string>& arguments,
                                       const std::string& network_namespace = "");
/// Runs `rivulet ARGUMENTS` to its end.
RunOutput run_rivulet(const std::vector<std::string>& arguments, Duration deadline);

struct DeviceGroupOptions {
  int devices = 3;
  std::string brokers;  ///< empty: starts an embedded broker
  std::string topic = "mnist";
  std::string on_peer_loss = "exit";
  const Network* network = nullptr;  ///< one node per device; `brokers` is at its host address
  int beside_broker = -1;  ///< index of a device on the broker's machine, which reaches it at 127.0.0.1
  std::vector<std::string> arguments;  ///< appended to every `rivulet run`
};

/// Devices device-0, device-1, ... of the job "mnist", from examples/mnist/device.toml with model linear and
/// one partition each. The broker, and so the control topic, persists across restarts of devices.
class DeviceGroup {
 public:
  explicit DeviceGroup(DeviceGroupOptions options);

  void start(int device, const std::vector<std::string>& more = {}) { start_on(device, device, more); }
  void start_on(int partition, int device, const std::vector<std::string>& more = {});
  void start_all();
  /// Feeds MNIST to all partitions, repeated; `more` are further arguments of `rivulet feed`.
  void feed(int rows_per_second, const std::vector<std::string>& more = {});
  void stop_feeding() { feeder_.reset(); }

  [[nodiscard]] Process& device(int device) { return *devices_.at(static_cast<std::size_t>(device)).process; }
  [[nodiscard]] const std::string& brokers() const noexcept { return brokers_; }
  [[nodiscard]] static std::string name(int device) { return "device-" + std::to_string(device); }
  [[nodiscard]] std::string directory(int device) const { return (folder_.path() / name(device)).string(); }
  /// Waits until every device reports a formed group.
  bool formed(Duration deadline);
  /// Waits until every device has applied `steps` rounds since its start.
  bool trained(int steps, Duration deadline);
  /// Waits until no device has applied a round for one second.
  bool idle(Duration deadline);
  [[nodiscard]] int http_port(int device) const {
    return devices_.at(static_cast<std::size_t>(device)).http_port;
  }
  /// Returns /api/v1/status; null without an answer.
  [[nodiscard]] nlohmann::json status(int device) const;
  /// Returns /metrics; empty without an answer.
  [[nodiscard]] std::string metrics(int device) const;
  /// Returns the summary of an ended device.
  nlohmann::json summary(int device);
  /// Returns the output of all devices so far, for INFO.
  std::string story();

 private:
  void start_broker();
  struct Member {
    std::unique_ptr<Process> process;
    std::string host = "127.0.0.1";
    int http_port = 0;
    std::string network_namespace;  ///< empty: that of the test
    std::string brokers;
  };
  [[nodiscard]] static nlohmann::json status_of(const Member& member);
  [[nodiscard]] static std::int64_t steps_of(const Member& member);

  DeviceGroupOptions options_;
  TempDir folder_;
  std::unique_ptr<Process> broker_;
  std::string brokers_;
  std::unique_ptr<Process> feeder_;
  std::vector<Member> devices_;
};

}  // namespace rivulet::testing
