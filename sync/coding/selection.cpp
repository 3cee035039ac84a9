#include "sync/coding/selection.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/vector_code.h"

namespace rivulet::sync {
namespace {

constexpr std::size_t block_numbers = 32;
constexpr std::size_t sample_size = 16'384;
/// So many more than wanted are looked for: a sample is no census.
constexpr double margin = 1.15;

/// The largest size in each block, as it is if it is finite, in one pass without a branch. NaN and infinity
/// are no numbers to send: they count as 0.
template <class T>
[[gnu::always_inline]] inline void sizes_of_blocks(const T* __restrict numbers, std::size_t blocks,
                                                   T* __restrict largest) {
  constexpr T most = std::numeric_limits<T>::max();
  for (std::size_t b = 0; b < blocks; ++b) {
    T size = 0;
    for (std::size_t i = 0; i < block_numbers; ++i) {
      const T x = numbers[b * block_numbers + i];
      const T a = x < 0 ? -x : x;
      const T finite = a <= most ? a : T{0};
      size = finite > size ? finite : size;
    }
    largest[b] = size;
  }
}
RIVULET_VECTOR_CODE void block_sizes(const float* numbers, std::size_t blocks, float* largest) {
  sizes_of_blocks(numbers, blocks, largest);
}
RIVULET_VECTOR_CODE void block_sizes(const double* numbers, std::size_t blocks, double* largest) {
  sizes_of_blocks(numbers, blocks, largest);
}

template <class T>
T size_of(T x) {
  const T a = std::abs(x);
  return a <= std::numeric_limits<T>::max() ? a : T{0};
}

/// A size that about `k` numbers reach; 0 if that is all of them.
template <class T>
T guess_threshold(std::span<const T> numbers, std::size_t k) {
  if (k >= numbers.size()) return 0;
  const std::size_t stride = std::max<std::size_t>(1, numbers.size() / sample_size);
  std::vector<T> sample;
  sample.reserve(numbers.size() / stride + 1);
  for (std::size_t i = stride / 2; i < numbers.size(); i += stride) sample.push_back(size_of(numbers[i]));
  const double share = static_cast<double>(k) / static_cast<double>(numbers.size());
  const double wanted = margin * share * static_cast<double>(sample.size()) +
                        3 * std::sqrt(share * static_cast<double>(sample.size())) + 1;
  const auto nth = static_cast<std::size_t>(wanted);
  if (nth >= sample.size()) return 0;
  std::nth_element(sample.begin(), sample.begin() + static_cast<std::ptrdiff_t>(nth), sample.end(),
                   std::greater<>());
  return sample[nth];
}

/// All that reach the threshold, ascending; nothing of size 0.
template <class T>
void collect(std::span<const T> numbers, T threshold, std::vector<std::uint32_t>& into) {
  constexpr std::size_t at_once = 4096;  // blocks whose sizes lie in the nearest cache
  std::vector<T> largest(std::min(at_once, numbers.size() / block_numbers));
  const auto take = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i)
      if (const T size = size_of(numbers[i]); size >= threshold && size > 0)
        into.push_back(static_cast<std::uint32_t>(i));
  };
  const std::size_t blocks = numbers.size() / block_numbers;
  for (std::size_t begin = 0; begin < blocks; begin += at_once) {
    const std::size_t n = std::min(at_once, blocks - begin);
    block_sizes(numbers.data() + begin * block_numbers, n, largest.data());
    for (std::size_t b = 0; b < n; ++b)
      if (largest[b] >= threshold) take((begin + b) * block_numbers, (begin + b + 1) * block_numbers);
  }
  take(blocks * block_numbers, numbers.size());
}

}  // namespace

template <class T>
void keep_largest(std::span<const T> numbers, std::size_t k, std::vector<std::uint32_t>& found) {
  if (found.size() <= k) return;
  if (k == 0) return found.clear();
  std::vector<T> sizes;
  sizes.reserve(found.size());
  for (const std::uint32_t at : found) sizes.push_back(size_of(numbers[at]));
  std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(k - 1), sizes.end(),
                   std::greater<>());
  const T least = sizes[k - 1];
  const auto larger = static_cast<std::size_t>(
      std::count_if(sizes.begin(), sizes.end(), [&](T size) { return size > least; }));
  std::size_t ties = k - larger;
  std::erase_if(found, [&](std::uint32_t at) {
    const T size = size_of(numbers[at]);
    if (size > least) return false;
    if (size == least && ties > 0) {
      --ties;
      return false;
    }
    return true;
  });
}

template <class T>
void select_largest(std::span<const T> numbers, std::size_t k, std::vector<std::uint32_t>& into) {
  into.clear();
  if (k == 0 || numbers.empty()) return;
  collect(numbers, guess_threshold(numbers, k), into);
  if (into.size() < k) {  // the sample was not like the rest
    into.clear();
    collect(numbers, T{0}, into);
  }
  keep_largest(numbers, k, into);
}

template void select_largest<float>(std::span<const float>, std::size_t, std::vector<std::uint32_t>&);
template void select_largest<double>(std::span<const double>, std::size_t, std::vector<std::uint32_t>&);
template void keep_largest<float>(std::span<const float>, std::size_t, std::vector<std::uint32_t>&);
template void keep_largest<double>(std::span<const double>, std::size_t, std::vector<std::uint32_t>&);

}  // namespace rivulet::sync
