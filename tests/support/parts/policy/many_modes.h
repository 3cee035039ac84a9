#pragma once
#include <atomic>
#include <cstdint>

namespace rivulet::testing {

/// The step from which the policy `many_modes` of this process sends everything.
inline std::atomic<std::uint64_t> dense_from = 1'000;

}  // namespace rivulet::testing
