#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rivulet::bench {

/// Positions of the `k` largest sizes by LibTorch: abs() and topk(), unsorted. A door of its own: LibTorch's
/// headers bring another fmt. One thread.
void largest_by_torch(std::span<const float> numbers, std::size_t k, std::vector<std::uint32_t>& into);

}  // namespace rivulet::bench
