#pragma once
#include <vector>

#include "sync/collective/aggregation.h"

namespace rivulet::testing {

inline const sync::CompressorEntry& compressor_named(
    std::string_view name,
    std::span<const sync::CompressorEntry* const> catalog = sync::builtin_compressors()) {
  for (const auto* entry : catalog)
    if (entry->name == name) return *entry;
  RIVULET_CHECK(false, "no such compressor");
}

template <class T>
GradientView view_over(std::vector<T>& numbers) {
  return {.data = reinterpret_cast<std::byte*>(numbers.data()),
          .count = numbers.size(),
          .scalar = sizeof(T) == 4 ? Scalar::f32 : Scalar::f64};
}

/// Exchanges dense contributions in a test's own memory, which must outlive it.
template <class T>
class DenseExchange : public sync::Exchange {
 public:
  DenseExchange(std::vector<T>& numbers, std::vector<T>& sum, const std::vector<double>& by_rank)
      : shape_{sizeof(T) == 4 ? Scalar::f32 : Scalar::f64, {numbers.size()}, 0} {
    view = 7;
    weights = by_rank;
    mine = view_over(numbers);
    agreed = view_over(sum);
    compressor = &compressor_named("dense");
    coding.shape = &shape_;
    slot_bytes = shape_.bytes();
    for (const double weight : by_rank) contributors += weight > 0 ? 1 : 0;
  }
  DenseExchange(const DenseExchange&) = delete;
  DenseExchange& operator=(const DenseExchange&) = delete;

 private:
  const sync::ContributionShape shape_;
};

}  // namespace rivulet::testing
