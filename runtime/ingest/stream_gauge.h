#pragma once
#include <atomic>
#include <cstdint>

namespace rivulet::runtime {

/// What becomes of this device's stream before its rows are in a batch: the ingest thread measures it, the
/// train thread tells the others, who plan by it (Facts::stream_rate, Facts::rows_dropped). Any thread.
struct StreamGauge {
  std::atomic<double> rows_per_second{0};
  std::atomic<std::uint64_t> rows_dropped{0};  ///< in this run, for any reason
};

}  // namespace rivulet::runtime
