#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "devices/modeled_device.h"
#include "runtime/status/summary.h"
#include "tests/support/kafka_server.h"
#include "tests/support/network.h"
#include "tests/support/temp_dir.h"

namespace rivulet::testing {

/// One job for real processes on shaped links and for the simulation. Model mlp of 784, 64 and 10.
struct TwinScenario {
  std::string name;
  double bits_per_second = 10e6;                     ///< in each direction of each device's link
  std::vector<devices::DeviceProfile> profiles{{}};  ///< one per device; repeated if fewer
  std::vector<double> rows_per_second{1000};         ///< of the streams; repeated if fewer
  std::vector<std::string> settings;                 ///< KEY=VALUE for the whole group
  std::string stop_after = "rounds=20";
};

/// Training speed of a group, from first to last round.
struct TwinPace {
  std::uint64_t rounds = 0;
  std::uint64_t rows = 0;
  double seconds = 0;
  [[nodiscard]] double rounds_per_s() const { return static_cast<double>(rounds) / seconds; }
  [[nodiscard]] double rows_per_s() const { return static_cast<double>(rows) / seconds; }
};

/// Runs scenarios both ways. Really: one process per device, in a network namespace with its own link,
/// compute slowed to the profile (programs/paced_device.cpp), rows generated in the process, control topic on
/// a real Kafka outside. Needs root.
class TwinRuns {
 public:
  /// Errors: unavailable (as Network, as KafkaServer).
  static Result<std::unique_ptr<TwinRuns>> create(int devices);
  /// Errors: unavailable (a device did not exit with 0; with its output), io.
  Result<TwinPace> really(const TwinScenario& scenario);
  /// The simulation gets no latency, since the real links have only that of their queues.
  Result<TwinPace> virtually(const TwinScenario& scenario);

 private:
  TwinRuns(int devices, std::unique_ptr<Network> network, std::unique_ptr<KafkaServer> kafka)
      : devices_(devices), network_(std::move(network)), kafka_(std::move(kafka)) {}
  Result<std::string> write_config(const TwinScenario& scenario);
  Result<std::unique_ptr<Process>> start(const TwinScenario& scenario, int device, const std::string& config);

  const int devices_;
  const std::unique_ptr<Network> network_;
  const std::unique_ptr<KafkaServer> kafka_;
  const TempDir folder_;
  int runs_ = 0;
};

}  // namespace rivulet::testing
