#pragma once
#include <atomic>
#include <cstdint>

namespace rivulet::testing {

/// The step from which this process's policy `many_modes` sends everything.
inline std::atomic<std::uint64_t> dense_from = 1'000;

}  // namespace rivulet::testing
