#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/status/node_status.h"

namespace rivulet::runtime {

/// One device's part of a summary. Seconds and bytes are sums over the run.
struct DeviceSummary {
  std::string id;
  // The totals of core/metrics.def.
#define RIVULET_VALUE(...)
#define RIVULET_TOTAL(key, type, ...) type::Plain key{};
#include "core/metrics.def"
  double batch_mean = 0;  ///< rows per round it had rows in
  double cpu_s = 0;
  std::uint64_t max_rss_bytes = 0;
  std::string digest;
  OwnScores own;
  /// Printed by the demo alone, which starts its devices again; the numbers above are since the last start
  /// then.
  std::optional<std::uint64_t> restarts;
};

/// What --json makes a command that trains print as the last line of stdout.
struct Summary {
  std::uint64_t rounds = 0;                          ///< applied rounds
  std::optional<double> accuracy;                    ///< held-out if measured, else prequential
  double rows_per_s = 0;                             ///< trained by the group
  std::map<std::string, double> time_to_accuracy_s;  ///< "0.90" -> seconds since training began
  bool parameters_equal = true;                      ///< over every digest compared
  std::uint64_t digests_compared = 0;
  std::vector<DeviceSummary> devices;

  /// Of the last rows of all devices.
  [[nodiscard]] OwnScores last_rows() const;
  /// Sums over the devices.
  [[nodiscard]] std::uint64_t agreement_bytes_sent() const;
  [[nodiscard]] std::uint64_t record_bytes_trained() const;
  /// Bytes sent in order to agree, to bytes of the records that were trained on; none: nothing was trained.
  [[nodiscard]] std::optional<double> edge_ratio() const;
};

/// One line of JSON with exactly these names; accuracy is null when unknown.
std::string to_json(const Summary& summary);
/// Errors are impossible for what to_json wrote; nullopt otherwise. Used by the demo to read its devices.
std::optional<Summary> summary_from_json(const std::string& line);

}  // namespace rivulet::runtime
