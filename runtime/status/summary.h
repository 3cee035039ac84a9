#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/status/node_status.h"

namespace rivulet::runtime {

/// One device's part of a summary. Seconds and bytes are totals of the run.
struct DeviceSummary {
  std::string id;
  // The totals of core/metrics.def.
#define RIVULET_VALUE(...)
#define RIVULET_TOTAL(key, type, ...) type::Plain key{};
#include "core/metrics.def"
  double batch_mean = 0;  ///< mean rows per batch, over rounds in which it had rows
  double cpu_s = 0;
  std::uint64_t max_rss_bytes = 0;
  std::string digest;
  OwnScores own;
  /// Only in the demo, which restarts devices. The values above then count from the device's last start.
  std::optional<std::uint64_t> restarts;
};

/// A change of an elastic group that the demo caused.
struct GroupChange {
  double at_s = 0;   ///< seconds after the group formed
  std::string what;  ///< killed | added | stopped
  std::string device;
  double gap_s = not_measured;  ///< time in which the other devices made no step; null in JSON
};

/// Summary of a training command: with --json, the last line of stdout.
struct Summary {
  std::uint64_t rounds = 0;                          ///< applied rounds
  std::optional<double> accuracy;                    ///< held-out if measured, else prequential
  double rows_per_s = 0;                             ///< rows/s trained by the group
  std::map<std::string, double> time_to_accuracy_s;  ///< "0.90" -> seconds since training began
  bool parameters_equal = true;                      ///< true if all compared digests are equal
  std::uint64_t digests_compared = 0;
  std::vector<DeviceSummary> devices;
  std::vector<GroupChange> changes;  ///< only in rivulet demo --elastic

  /// Returns the scores over the last rows of all devices.
  [[nodiscard]] OwnScores last_rows() const;
  /// Return sums over all devices.
  [[nodiscard]] std::uint64_t sync_bytes_sent() const;
  [[nodiscard]] std::uint64_t record_bytes_trained() const;
  /// Returns synchronization bytes sent / bytes of trained records; nullopt if nothing was trained.
  [[nodiscard]] std::optional<double> edge_ratio() const;
};

/// Renders one line of JSON with exactly these keys; `changes` only if there are any. Unknown accuracy is
/// null.
std::string to_json(const Summary& summary);
/// Parses the output of to_json(), without `changes`; nullopt for any other input. The demo reads its devices
/// with it.
std::optional<Summary> summary_from_json(const std::string& line);

}  // namespace rivulet::runtime
