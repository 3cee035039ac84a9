#pragma once
#include <memory>
#include <string>
#include <vector>

#include "devices/modeled_device.h"
#include "runtime/config/config.h"
#include "runtime/node/catalog.h"
#include "runtime/node/node.h"
#include "runtime/node/run.h"
#include "tests/support/metric_sheet.h"

namespace rivulet::testing {

/// Devices of one job on one thread under virtual clocks. Each is a Node with production's measurements: a
/// registry for Prometheus, a log, recent rounds, checkpoints on a disk, and the pages.
class MeasuredGroup {
 public:
  struct Row {
    std::string value;
    double due_s = 0;
    double age_s = 0;  ///< age of its record when read, from the timestamp
  };
  struct Device {
    std::string id;
    std::vector<Row> rows;
    devices::DeviceProfile profile;
  };
  /// Messages take `latency` and no other time. Builds the group, or ends the program with the reason.
  MeasuredGroup(const runtime::LoadedConfig& loaded, const runtime::Catalog& catalog,
                const runtime::StopAfter& stop_after, std::vector<Device> devices, Duration latency);
  ~MeasuredGroup();
  MeasuredGroup(const MeasuredGroup&) = delete;
  MeasuredGroup& operator=(const MeasuredGroup&) = delete;

  /// Adds bytes to the control log before the group's own records.
  void append_to_log(const std::string& bytes);
  /// Starts another device of the job now. It reads the partition after those of the earlier ones.
  void join(const Device& device);
  /// Requests a device to stop, as a signal does.
  void stop(std::size_t device);
  /// Runs until this second; all may go on.
  void run_to(double second);
  /// Runs until all have ended, and `seconds_longer` more; fails the test after 100 s.
  void run(double seconds_longer);
  [[nodiscard]] double seconds() const;
  runtime::Node& node(std::size_t device);
  [[nodiscard]] MetricSheet sheet(std::size_t device) const;
  [[nodiscard]] std::string status_json(std::size_t device) const;
  [[nodiscard]] std::string group_json(std::size_t device) const;
  [[nodiscard]] std::string page(std::size_t device) const;
  /// Size of the device's newest checkpoint file.
  [[nodiscard]] double checkpoint_bytes(std::size_t device) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rivulet::testing
