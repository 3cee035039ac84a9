#pragma once
#include <atomic>
#include <cstdint>

namespace rivulet::runtime {

/// Rates of this device's stream before batching. Measured by the ingest thread; the train thread sends them
/// to the other devices for planning (Facts::stream_rate, Facts::rows_dropped). Any thread.
struct StreamGauge {
  std::atomic<double> rows_per_second{0};
  std::atomic<std::uint64_t> rows_dropped{0};  ///< rows dropped in this run, for any reason
};

}  // namespace rivulet::runtime
