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
  double batch_mean = 0;  ///< mean over its rounds with rows
  double cpu_s = 0;
  std::uint64_t max_rss_bytes = 0;
  std::string digest;
  OwnScores own;
  /// Only in the demo, which restarts its devices; the values above then count from the last start.
  std::optional<std::uint64_t> restarts;
};

/// Summary of a training command: with --json, the last line of stdout.
struct Summary {
  std::uint64_t rounds = 0;                          ///< applied rounds
  std::optional<double> accuracy;                    ///< held-out if measured, else prequential
  double rows_per_s = 0;                             ///< rows/s trained by the group
  std::map<std::string, double> time_to_accuracy_s;  ///< "0.90" -> seconds since training began
  bool parameters_equal = true;                      ///< True if all compared digests are equal
  std::uint64_t digests_compared = 0;
  std::vector<DeviceSummary> devices;

  /// Scores over the last rows of all devices.
  [[nodiscard]] OwnScores last_rows() const;
  /// Sums over the devices.
  [[nodiscard]] std::uint64_t sync_bytes_sent() const;
  [[nodiscard]] std::uint64_t record_bytes_trained() const;
  /// Synchronization bytes sent / bytes of trained records; none if nothing was trained.
  [[nodiscard]] std::optional<double> edge_ratio() const;
};

/// One line of JSON with exactly these keys; accuracy is null if unknown.
std::string to_json(const Summary& summary);
/// Parses the output of to_json(); nullopt for any other input. The demo reads its devices with it.
std::optional<Summary> summary_from_json(const std::string& line);

}  // namespace rivulet::runtime
