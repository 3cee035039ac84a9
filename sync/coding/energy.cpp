#include "sync/coding/energy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "core/check.h"

namespace rivulet::sync {
namespace {

constexpr int fraction_bits = 23;
constexpr int kept_fraction_bits = 5;
constexpr int shift = fraction_bits - kept_fraction_bits;
constexpr std::size_t bins = std::size_t{1} << (8 + kept_fraction_bits);
constexpr std::uint32_t without_sign = 0x7fffffffU;
constexpr std::uint32_t first_infinite = 0x7f800000U;

/// Returns the bin of a magnitude; the first one if it is non-finite.
[[gnu::always_inline]] inline std::uint32_t bin_of(float x) {
  const std::uint32_t size = std::bit_cast<std::uint32_t>(x) & without_sign;
  return (size < first_infinite ? size : 0) >> shift;
}

/// Computes the bins of a block first, which vectorizes, then counts, which does not.
template <class T>
void count(const T* mine, const T* kept, double weight, std::size_t numbers, std::uint32_t* counts) {
  constexpr std::size_t block = 256;
  const auto w = static_cast<T>(weight);
  std::array<std::uint32_t, block> places{};
  const auto place = [&](std::size_t from, std::size_t n) {
    if (kept != nullptr)
      for (std::size_t i = 0; i < n; ++i)
        places[i] = bin_of(static_cast<float>(w * mine[from + i] + kept[from + i]));
    else
      for (std::size_t i = 0; i < n; ++i) places[i] = bin_of(static_cast<float>(w * mine[from + i]));
  };
  std::size_t at = 0;
  for (; at + block <= numbers; at += block) {
    place(at, block);
    for (std::size_t i = 0; i < block; i += 2) {
      ++counts[places[i]];
      ++counts[bins + places[i + 1]];
    }
  }
  place(at, numbers - at);
  for (std::size_t i = 0; i < numbers - at; ++i) ++counts[(i % 2) * bins + places[i]];
}

/// Returns the mean square of a bin, assumed to be uniform. The first bin, which holds 0 and tiny magnitudes,
/// and the bins of non-finite values count as 0.
double mean_square(std::size_t bin) {
  if (bin == 0 || bin >= first_infinite >> shift) return 0;
  const double low = std::bit_cast<float>(static_cast<std::uint32_t>(bin << shift));
  const double high = std::bit_cast<float>(static_cast<std::uint32_t>(((bin + 1) << shift) - 1));
  return (low * low + low * high + high * high) / 3;
}

}  // namespace

EnergyHistogram::EnergyHistogram() : bins_(2 * bins) {}

void EnergyHistogram::add(const GradientView& mine, double weight, const GradientView& kept) {
  RIVULET_CHECK(kept.count == 0 || (kept.count == mine.count && kept.scalar == mine.scalar),
                "contribution and residual differ in shape");
  if (mine.scalar == Scalar::f32)
    count(mine.as<float>().data(), kept.count > 0 ? kept.as<float>().data() : nullptr, weight, mine.count,
          bins_.data());
  else
    count(mine.as<double>().data(), kept.count > 0 ? kept.as<double>().data() : nullptr, weight, mine.count,
          bins_.data());
  count_ += mine.count;
}

double EnergyHistogram::squares() const {
  double sum = 0;
  for (std::size_t bin = 0; bin < bins; ++bin)
    sum += (static_cast<double>(bins_[bin]) + bins_[bins + bin]) * mean_square(bin);
  return sum;
}

double EnergyHistogram::share(double keep) const {
  return shares(std::span(&keep, 1))[0];
}

std::vector<double> EnergyHistogram::shares(std::span<const double> keeps) const {
  const double all = squares();
  std::vector<double> found(keeps.size());
  if (!(all > 0)) return found;
  double taken = 0;
  double energy = 0;
  std::size_t bin = bins;
  double in_bin = 0;
  for (std::size_t i = keeps.size(); i-- > 0;) {  // smallest first
    const double wanted = std::max(1.0, std::floor(keeps[i] * static_cast<double>(count_) + 0.5));
    while (bin > 0 && taken + in_bin < wanted) {
      taken += in_bin;
      energy += bin < bins ? in_bin * mean_square(bin) : 0;
      --bin;
      in_bin = static_cast<double>(bins_[bin]) + bins_[bins + bin];
    }
    // A partly used bin counts with its mean, at most 2 % below its largest elements.
    found[i] = std::min(1.0, (energy + (wanted - taken) * mean_square(bin)) / all);
  }
  return found;
}

}  // namespace rivulet::sync
