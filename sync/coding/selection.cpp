#include "sync/coding/selection.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/rng.h"
#include "core/vector_code.h"

namespace rivulet::sync {
namespace {

constexpr std::size_t block_numbers = 32;
constexpr std::size_t least_sample = 2'048;
constexpr std::size_t most_sample = 16'384;
/// Factor of extra candidates, because a sample is not exact.
constexpr double margin = 1.15;

/// Magnitudes as integers (the bits without the sign), which have the same order and vectorize. NaN and
/// infinity count as 0 and are never sent.
template <class T>
using SizeOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
[[gnu::always_inline]] inline SizeOf<T> size_of(T x) {
  constexpr auto sign = SizeOf<T>{1} << (8 * sizeof(T) - 1);
  constexpr auto most = std::bit_cast<SizeOf<T>>(std::numeric_limits<T>::max());
  const SizeOf<T> size = std::bit_cast<SizeOf<T>>(x) & ~sign;
  return size <= most ? size : 0;
}

/// Sets one bit for each element of a block that reaches the threshold, in one pass without branches. Uses
/// explicit vectors, because the compiler does not vectorize the loop.
template <class T>
[[gnu::always_inline]] inline void look_into_blocks(const T* __restrict numbers, std::size_t blocks,
                                                    SizeOf<T> threshold, std::uint32_t* __restrict reached) {
  constexpr std::size_t vector_bytes = 64;
  using Sizes [[gnu::vector_size(vector_bytes)]] = SizeOf<T>;
  using Words [[gnu::vector_size(vector_bytes)]] = std::uint64_t;
  constexpr std::size_t in_vector = vector_bytes / sizeof(T);
  constexpr auto sign = SizeOf<T>{1} << (8 * sizeof(T) - 1);
  constexpr auto most = std::bit_cast<SizeOf<T>>(std::numeric_limits<T>::max());
  Sizes first_bits;
  for (std::size_t lane = 0; lane < in_vector; ++lane) first_bits[lane] = SizeOf<T>{1} << lane;
  for (std::size_t b = 0; b < blocks; ++b) {
    Sizes all = {};
    for (std::size_t i = 0; i < block_numbers; i += in_vector) {
      Sizes sizes;
      std::memcpy(&sizes, numbers + b * block_numbers + i, vector_bytes);
      sizes &= ~sign;
      all |= (Sizes)(sizes >= threshold) & (Sizes)(sizes <= most) & (first_bits << i);
    }
    const auto words = (Words)all;
    const std::uint64_t word =
        (words[0] | words[1]) | (words[2] | words[3]) | (words[4] | words[5]) | (words[6] | words[7]);
    reached[b] = static_cast<std::uint32_t>(word | word >> 32);
  }
}
RIVULET_VECTOR_CODE void look_into(const float* numbers, std::size_t blocks, std::uint32_t threshold,
                                   std::uint32_t* reached) {
  look_into_blocks(numbers, blocks, threshold, reached);
}
RIVULET_VECTOR_CODE void look_into(const double* numbers, std::size_t blocks, std::uint64_t threshold,
                                   std::uint32_t* reached) {
  look_into_blocks(numbers, blocks, threshold, reached);
}

/// Returns a magnitude that about `k` elements reach; 0 for all of them.
template <class T>
SizeOf<T> guess_threshold(std::span<const T> numbers, std::size_t k) {
  if (k >= numbers.size()) return 0;
  const std::size_t wanted_sample = std::clamp(numbers.size() / 256, least_sample, most_sample);
  const std::size_t stride = std::max<std::size_t>(1, numbers.size() / wanted_sample);
  std::vector<SizeOf<T>> sample;
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

/// Candidates and their magnitudes. Both vectors have spare room after `count`.
template <class T>
struct Found {
  std::vector<std::uint32_t>& at;
  std::vector<SizeOf<T>> sizes;
  std::size_t count = 0;

  void make_room(std::size_t more, std::size_t most) {
    if (count + more <= at.size() && count + more <= sizes.size()) return;
    const std::size_t room = std::min(2 * (count + more), most + more);
    at.resize(room);
    sizes.resize(room);
  }
};

/// Takes the elements of a block whose bits are set.
template <class T>
void take(std::span<const T> numbers, std::size_t first, std::uint32_t bits, Found<T>& found) {
  found.make_room(block_numbers, numbers.size());
  for (; bits != 0; bits &= bits - 1) {
    const std::size_t i = first + static_cast<std::size_t>(std::countr_zero(bits));
    found.at[found.count] = static_cast<std::uint32_t>(i);
    found.sizes[found.count++] = size_of(numbers[i]);
  }
}

/// Collects all elements that reach the threshold, ascending, without zeros.
template <class T>
void collect(std::span<const T> numbers, SizeOf<T> threshold, Found<T>& found) {
  constexpr std::size_t at_once = 256;  // blocks that stay in the L1 cache until they are taken
  threshold = std::max(threshold, SizeOf<T>{1});
  std::vector<std::uint32_t> reached(std::min(at_once, numbers.size() / block_numbers));
  const std::size_t blocks = numbers.size() / block_numbers;
  for (std::size_t begin = 0; begin < blocks; begin += at_once) {
    const std::size_t n = std::min(at_once, blocks - begin);
    look_into(numbers.data() + begin * block_numbers, n, threshold, reached.data());
    for (std::size_t b = 0; b < n; ++b)
      if (reached[b] != 0) take(numbers, (begin + b) * block_numbers, reached[b], found);
  }
  std::uint32_t rest = 0;
  for (std::size_t i = blocks * block_numbers; i < numbers.size(); ++i)
    rest |= (size_of(numbers[i]) >= threshold ? 1U : 0U) << i % block_numbers;
  take(numbers, blocks * block_numbers, rest, found);
}

/// Returns the k-th largest magnitude, 1 <= k <= count, and how many are larger. Counts by leading bits, then
/// searches one bin.
template <class Size>
std::pair<Size, std::size_t> size_of_kth(std::span<const Size> sizes, std::size_t k) {
  const auto [least, most] = std::ranges::minmax(sizes);
  constexpr int bin_bits = 12;
  constexpr std::size_t bins = std::size_t{1} << bin_bits;
  const int shift = std::max(0, static_cast<int>(std::bit_width(most - least)) - bin_bits);
  std::vector<std::uint32_t> in_bin(bins);
  for (const Size size : sizes) ++in_bin[(size - least) >> shift];
  std::size_t larger = 0;
  std::size_t bin = bins - 1;
  while (larger + in_bin[bin] < k) larger += in_bin[bin--];
  std::vector<Size> near;
  near.reserve(in_bin[bin]);
  for (const Size size : sizes)
    if ((size - least) >> shift == bin) near.push_back(size);
  const auto kth = near.begin() + static_cast<std::ptrdiff_t>(k - larger - 1);
  std::nth_element(near.begin(), kth, near.end(), std::greater<>());
  larger +=
      static_cast<std::size_t>(std::count_if(near.begin(), kth, [&](Size size) { return size > *kth; }));
  return {*kth, larger};
}

/// Keeps the `k` largest candidates, lower positions first among equal ones.
template <class T>
void keep(std::size_t k, Found<T>& found) {
  if (found.count <= k) return found.at.resize(found.count);
  if (k == 0) return found.at.clear();
  const auto [least, larger] =
      size_of_kth<SizeOf<T>>(std::span(std::as_const(found.sizes)).first(found.count), k);
  std::size_t ties = k - larger;
  std::size_t n = 0;
  for (std::size_t i = 0; i < found.count; ++i) {
    const std::size_t tie = found.sizes[i] == least && ties > 0 ? 1 : 0;
    ties -= tie;
    found.at[n] = found.at[i];
    n += tie + (found.sizes[i] > least ? 1 : 0);
  }
  found.at.resize(n);
}

/// Returns how many elements reach the threshold.
template <class T>
std::size_t count_reaching(std::span<const T> numbers, SizeOf<T> threshold) {
  constexpr std::size_t at_once = 256;
  std::array<std::uint32_t, at_once> reached{};
  const std::size_t blocks = numbers.size() / block_numbers;
  std::size_t count = 0;
  for (std::size_t begin = 0; begin < blocks; begin += at_once) {
    const std::size_t n = std::min(at_once, blocks - begin);
    look_into(numbers.data() + begin * block_numbers, n, threshold, reached.data());
    for (std::size_t b = 0; b < n; ++b) count += static_cast<std::size_t>(std::popcount(reached.at(b)));
  }
  for (const T x : numbers.subspan(blocks * block_numbers)) count += size_of(x) >= threshold ? 1U : 0U;
  return count;
}

template <class T>
T number_of(SizeOf<T> size) {
  return std::bit_cast<T>(size);
}

/// Estimates the k-th largest magnitude from a sample drawn with replacement.
template <class T>
T sampled_threshold(std::span<const T> numbers, std::size_t k, std::uint64_t seed) {
  const std::size_t drawn = std::max(numbers.size() / 100, std::min(numbers.size(), least_sample));
  const double share = static_cast<double>(k) / static_cast<double>(numbers.size());
  const double wanted = std::ceil(share * static_cast<double>(drawn));
  const auto nth = std::min(drawn, static_cast<std::size_t>(wanted)) - 1;
  std::vector<SizeOf<T>> sample;
  sample.reserve(drawn);
  Rng rng(derive_seed(seed, "threshold", 0));
  for (std::size_t i = 0; i < drawn; ++i) sample.push_back(size_of(numbers[rng.below(numbers.size())]));
  std::nth_element(sample.begin(), sample.begin() + static_cast<std::ptrdiff_t>(nth), sample.end(),
                   std::greater<>());
  return number_of<T>(sample[nth]);
}

template <class T>
void take_reaching(std::span<const T> numbers, T threshold, std::vector<std::uint32_t>& into) {
  Found<T> found{into, {}};
  collect(numbers, size_of(threshold), found);
  into.resize(found.count);
}

}  // namespace

std::size_t entries_of(std::size_t count, double keep_ratio) {
  if (count == 0) return 0;
  const auto k = static_cast<std::uint64_t>(std::llround(static_cast<double>(count) * keep_ratio));
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(k, 1, count));
}

template <class T>
void keep_largest(std::span<const T> numbers, std::size_t k, std::vector<std::uint32_t>& found) {
  Found<T> all{found, {}, found.size()};
  all.sizes.reserve(found.size());
  for (const std::uint32_t at : found) all.sizes.push_back(size_of(numbers[at]));
  keep(k, all);
}

template <class T>
void select_largest(std::span<const T> numbers, std::size_t k, std::vector<std::uint32_t>& into) {
  into.clear();
  if (k == 0 || numbers.empty()) return;
  Found<T> found{into, {}};
  const SizeOf<T> threshold = guess_threshold(numbers, k);
  collect(numbers, threshold, found);
  if (found.count < k && threshold > 1) {  // the sample was not representative
    found.count = 0;
    collect(numbers, SizeOf<T>{0}, found);
  }
  keep(k, found);
}

template <class T>
void select_sampled(std::span<const T> numbers, std::size_t k, std::uint64_t seed,
                    std::vector<std::uint32_t>& into) {
  constexpr int tries = 10;
  constexpr double above = 1.3;
  constexpr double below = 0.7;
  into.clear();
  if (k == 0 || numbers.empty()) return;
  T threshold = sampled_threshold(numbers, std::min(k, numbers.size()), seed);
  for (int i = 0; i < tries; ++i) {
    const auto found = static_cast<double>(count_reaching(numbers, size_of(threshold)));
    if (found > above * static_cast<double>(k))
      threshold *= static_cast<T>(above);
    else if (found < below * static_cast<double>(k))
      threshold *= static_cast<T>(below);
    else
      break;
  }
  take_reaching(numbers, threshold, into);
}

template <class T>
void select_bisected(std::span<const T> numbers, std::size_t k, std::vector<std::uint32_t>& into) {
  constexpr double narrow = 1e-3;
  into.clear();
  if (k == 0 || numbers.empty()) return;
  double sum = 0;
  SizeOf<T> largest = 0;
  for (const T x : numbers) {
    const SizeOf<T> size = size_of(x);
    sum += static_cast<double>(number_of<T>(size));
    largest = std::max(largest, size);
  }
  const double mean = sum / static_cast<double>(numbers.size());
  const double range = static_cast<double>(number_of<T>(largest)) - mean;
  double low = 0;
  double high = 1;
  T threshold = static_cast<T>(mean);
  while (high - low > narrow) {
    const double part = (low + high) / 2;
    threshold = static_cast<T>(mean + part * range);
    const std::size_t found = count_reaching(numbers, size_of(threshold));
    if (found >= k && found <= 2 * k) break;
    (found < k ? high : low) = part;
  }
  take_reaching(numbers, threshold, into);
}

template void select_largest<float>(std::span<const float>, std::size_t, std::vector<std::uint32_t>&);
template void select_largest<double>(std::span<const double>, std::size_t, std::vector<std::uint32_t>&);
template void select_sampled<float>(std::span<const float>, std::size_t, std::uint64_t,
                                    std::vector<std::uint32_t>&);
template void select_sampled<double>(std::span<const double>, std::size_t, std::uint64_t,
                                     std::vector<std::uint32_t>&);
template void select_bisected<float>(std::span<const float>, std::size_t, std::vector<std::uint32_t>&);
template void select_bisected<double>(std::span<const double>, std::size_t, std::vector<std::uint32_t>&);
template void keep_largest<float>(std::span<const float>, std::size_t, std::vector<std::uint32_t>&);
template void keep_largest<double>(std::span<const double>, std::size_t, std::vector<std::uint32_t>&);

}  // namespace rivulet::sync
