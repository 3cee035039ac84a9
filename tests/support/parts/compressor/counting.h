#pragma once
#include <atomic>

namespace rivulet::testing {

/// What the compressors called "counting" of this process were asked to do, over all devices.
struct CompressorCounts {
  std::atomic<int> encoded{0};
  std::atomic<int> committed{0};
  std::atomic<int> dropped{0};
};
CompressorCounts& compressor_counts();

/// As a plan's keep ratio: send an infinity.
inline constexpr double poison = 2.0;

}  // namespace rivulet::testing
