#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rivulet::bench {

/// Finds the positions of the `k` largest absolute values with LibTorch's abs() and topk(), unsorted, on one
/// thread. A separate object, because LibTorch's headers include another fmt.
void largest_by_torch(std::span<const float> numbers, std::size_t k, std::vector<std::uint32_t>& into);

}  // namespace rivulet::bench
