#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// The largest numbers of a long vector, without a sort: one pass over it with a threshold that a sample
/// gives, then a partition of what it found. Pure; any thread.
namespace rivulet::sync {

/// Of N numbers, this share: one at least, unless there is none.
std::size_t entries_of(std::size_t count, double keep_ratio);

/// Positions of the `k` numbers of the largest size, ascending; of equal ones the lower positions. Numbers
/// that are 0 or not finite are never among them: there may be fewer. Cost: about 2 passes at k =
/// 1 % of the numbers, 0.9 at 0.1 % (bench_selection).
template <class T>
void select_largest(std::span<const T> numbers, std::size_t k, std::vector<std::uint32_t>& into);

/// Positions of about `k` of the largest, ascending: those above a threshold that a sample of a hundredth
/// gives, which is raised or lowered up to ten times until there are 0.7 k to 1.3 k. `seed`: of the sample.
template <class T>
void select_sampled(std::span<const T> numbers, std::size_t k, std::uint64_t seed,
                    std::vector<std::uint32_t>& into);
/// ... above a threshold found by halves between the mean and the largest size, until there are k to 2 k.
template <class T>
void select_bisected(std::span<const T> numbers, std::size_t k, std::vector<std::uint32_t>& into);

/// Of `found`, ascending positions, the `k` of the largest size.
template <class T>
void keep_largest(std::span<const T> numbers, std::size_t k, std::vector<std::uint32_t>& found);

}  // namespace rivulet::sync
