#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// Selects the largest elements of a long vector without sorting: one pass with a sampled threshold, then a
/// partition of the candidates. Pure; any thread.
namespace rivulet::sync {

/// Returns keep_ratio * count, rounded, with a minimum of one unless count is 0.
std::size_t entries_of(std::size_t count, double keep_ratio);

/// Selects the `k` elements of largest magnitude, as ascending positions. Of equal elements it selects those
/// at lower positions. Never selects elements that are 0 or non-finite, so the result may be shorter. Cost:
/// about 2 passes at k = 1 % of the elements, 0.9 at 0.1 % (bench_selection).
template <class T>
void select_largest(std::span<const T> numbers, std::size_t k, std::vector<std::uint32_t>& into);

/// Selects about `k` of the largest elements, in ascending order, by a threshold from a sample of 1 %. The
/// threshold is raised or lowered up to ten times until 0.7 k to 1.3 k remain. `seed` determines the sample.
template <class T>
void select_sampled(std::span<const T> numbers, std::size_t k, std::uint64_t seed,
                    std::vector<std::uint32_t>& into);
/// Selects by a threshold bisected between mean and largest magnitude, until k to 2 k elements remain.
template <class T>
void select_bisected(std::span<const T> numbers, std::size_t k, std::vector<std::uint32_t>& into);

/// Reduces `found`, ascending positions, to the `k` elements of largest magnitude.
template <class T>
void keep_largest(std::span<const T> numbers, std::size_t k, std::vector<std::uint32_t>& found);

}  // namespace rivulet::sync
