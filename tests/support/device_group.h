#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tests/support/network.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"

/// The real binary as processes: a broker, a feeder and devices, for tests of what a group does when
/// something happens to one of them. Everything is REQUIREd: a helper that fails ends the test.
namespace rivulet::testing {

/// `rivulet ARGUMENTS`, running.
std::unique_ptr<Process> start_rivulet(const std::vector<std::string>& arguments,
                                       const std::string& network_namespace = "");
/// `rivulet ARGUMENTS` to its end.
RunOutput run_rivulet(const std::vector<std::string>& arguments, Duration deadline);

struct DeviceGroupOptions {
  int devices = 3;
  std::string brokers;  ///< empty: an embedded broker of its own
  std::string topic = "mnist";
  std::string on_peer_loss = "exit";
  const Network* network = nullptr;  ///< a node for each device; `brokers` is at its host address
  int beside_broker = -1;  ///< this device is on the machine of the broker, and finds it at 127.0.0.1
  std::vector<std::string> arguments;  ///< of every `rivulet run`, after ours
};

/// Devices device-0, device-1, ... of the job "mnist" on examples/mnist/device.toml with model linear, one
/// partition each. An object outlives many starts: the broker and so the control topic stay.
class DeviceGroup {
 public:
  explicit DeviceGroup(DeviceGroupOptions options);

  void start(int device, const std::vector<std::string>& more = {}) { start_on(device, device, more); }
  void start_on(int partition, int device, const std::vector<std::string>& more = {});
  void start_all();
  /// Plays MNIST to all partitions, without end; `more` are further arguments of `rivulet feed`.
  void feed(int rows_per_second, const std::vector<std::string>& more = {});
  void stop_feeding() { feeder_.reset(); }

  [[nodiscard]] Process& device(int device) { return *devices_.at(static_cast<std::size_t>(device)).process; }
  [[nodiscard]] const std::string& brokers() const noexcept { return brokers_; }
  [[nodiscard]] static std::string name(int device) { return "device-" + std::to_string(device); }
  [[nodiscard]] std::string directory(int device) const { return (folder_.path() / name(device)).string(); }
  /// Waits until every device says that the group has formed.
  bool formed(Duration deadline);
  /// Waits until every device has applied `steps` rounds in this life.
  bool trained(int steps, Duration deadline);
  /// Waits until no device has applied a round for a second.
  bool idle(Duration deadline);
  [[nodiscard]] int http_port(int device) const {
    return devices_.at(static_cast<std::size_t>(device)).http_port;
  }
  /// What /api/v1/status says; null if it does not answer.
  [[nodiscard]] nlohmann::json status(int device) const;
  /// What /metrics says; empty if it does not answer.
  [[nodiscard]] std::string metrics(int device) const;
  /// The summary that an ended device printed.
  nlohmann::json summary(int device);
  /// Everything that the devices said so far, for INFO.
  std::string story();

 private:
  void start_broker();
  struct Member {
    std::unique_ptr<Process> process;
    std::string host = "127.0.0.1";
    int http_port = 0;
    std::string network_namespace;  ///< empty: the test's own
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
