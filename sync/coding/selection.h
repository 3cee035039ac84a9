#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// The largest numbers of a long vector, without a sort: one pass over it with a threshold that a sample
/// gives, then a partition of what it found. Pure; any thread.
namespace rivulet::sync {

/// Of so many numbers, this share: one at least, unless there is none.
std::size_t entries_of(std::size_t count, double keep_ratio);

/// Positions of the `k` numbers of the largest size, ascending; of equal ones the lower positions. Numbers
/// that are 0 or not finite are never among them: there may be fewer. Cost: about 2 passes at k =
/// 1 % of the numbers, 0.9 at 0.1 % (bench_selection).
template <class T>
void select_largest(std::span<const T> numbers, std::size_t k, std::vector<std::uint32_t>& into);

/// Of `found`, ascending positions, the `k` of the largest size.
template <class T>
void keep_largest(std::span<const T> numbers, std::size_t k, std::vector<std::uint32_t>& found);

}  // namespace rivulet::sync
