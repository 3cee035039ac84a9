#pragma once
#include <cstddef>

namespace rivulet::devices {

/// out[r, c] = sum over d of left[r, d] * right[d, c], for matrices of a few hundred rows and columns.
template <class T>
struct Product {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t depth = 0;
  const T* left = nullptr;  ///< [r, d] at r * left_row + d * left_depth: transposed access is possible
  std::size_t left_row = 0;
  std::size_t left_depth = 0;
  const T* right = nullptr;  ///< [d, c] at d * right_row + c, readable up to padded(columns)
  std::size_t right_row = 0;
  T* out = nullptr;  ///< [r, c] at r * out_row + c; never written beyond `columns`
  std::size_t out_row = 0;
  bool adds = false;  ///< adds to `out` instead of overwriting it
};

/// Row length in memory of a right factor with `columns` columns: a multiple of the widest vector unit.
constexpr std::size_t padded(std::size_t columns) {
  return (columns + 15) / 16 * 16;
}

/// Accumulates each sum in the order of d: the same bits on every machine. Needs no setup, so it is
/// worthwhile from a few hundred products on (bench_small_models).
void multiply(const Product<float>& product);
void multiply(const Product<double>& product);

}  // namespace rivulet::devices
