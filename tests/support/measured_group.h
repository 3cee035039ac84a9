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

/// Devices of one job on one thread under virtual clocks, each a Node with what production measures it with:
/// a registry that Prometheus could scrape, a log, the board of rounds, checkpoints on a disk, and the pages.
class MeasuredGroup {
 public:
  struct Row {
    std::string value;
    double due_s = 0;
    double age_s = 0;  ///< of its record when it is read: what the timestamp says
  };
  struct Device {
    std::string id;
    std::vector<Row> rows;
    devices::DeviceProfile profile;
  };
  /// Messages take `latency` and nothing more. Builds it or ends the program with the reason.
  MeasuredGroup(const runtime::LoadedConfig& loaded, const runtime::Catalog& catalog,
                const runtime::StopAfter& stop_after, std::vector<Device> devices, Duration latency);
  ~MeasuredGroup();
  MeasuredGroup(const MeasuredGroup&) = delete;
  MeasuredGroup& operator=(const MeasuredGroup&) = delete;

  /// Bytes that come to lie in the control log before anything of the group's own.
  void append_to_log(const std::string& bytes);
  /// Until all have ended, and `seconds_longer` more; fails the test if they do not within 100 s.
  void run(double seconds_longer);
  [[nodiscard]] double seconds() const;
  runtime::Node& node(std::size_t device);
  [[nodiscard]] MetricSheet sheet(std::size_t device) const;
  [[nodiscard]] std::string status_json(std::size_t device) const;
  [[nodiscard]] std::string group_json(std::size_t device) const;
  [[nodiscard]] std::string page(std::size_t device) const;
  /// Size of its newest checkpoint's file.
  [[nodiscard]] double checkpoint_bytes(std::size_t device) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rivulet::testing
