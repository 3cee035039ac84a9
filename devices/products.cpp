#include "devices/products.h"

#include <cstring>

namespace rivulet::devices {
namespace {

// Vectors as wide as the processor's: the compiler splits wider ones through the stack. As with
// RIVULET_VECTOR_CODE, products and sums are rounded one by one (no fused multiply-add), in the written
// order.

/// Columns of a tile; its sums stay in registers.
constexpr std::size_t tile_columns = 16;

template <class T, std::size_t bytes>
using Vector __attribute__((vector_size(bytes))) = T;
/// The same vector at any address in an array of T.
template <class T, std::size_t bytes>
struct [[gnu::packed, gnu::may_alias]] Unaligned {
  Vector<T, bytes> vector;
};

/// Keeps the sums in registers: nothing takes their address.
template <class T, std::size_t bytes, std::size_t rows>
[[gnu::always_inline]] inline void add_products(const T* left, std::size_t left_row, std::size_t left_depth,
                                                const T* right, std::size_t right_row, std::size_t depth,
                                                T* out, std::size_t out_row) {
  constexpr std::size_t lanes = bytes / sizeof(T);
  constexpr std::size_t vectors = tile_columns / lanes;
  Vector<T, bytes> sums[rows][vectors];
#pragma GCC unroll 8
  for (std::size_t r = 0; r < rows; ++r)
#pragma GCC unroll 8
    for (std::size_t v = 0; v < vectors; ++v)
      sums[r][v] = reinterpret_cast<const Unaligned<T, bytes>*>(out + r * out_row + v * lanes)->vector;
  for (std::size_t d = 0; d < depth; ++d, left += left_depth, right += right_row) {
    Vector<T, bytes> across[vectors];
#pragma GCC unroll 8
    for (std::size_t v = 0; v < vectors; ++v)
      across[v] = reinterpret_cast<const Unaligned<T, bytes>*>(right + v * lanes)->vector;
#pragma GCC unroll 8
    for (std::size_t r = 0; r < rows; ++r)
#pragma GCC unroll 8
      for (std::size_t v = 0; v < vectors; ++v) sums[r][v] += left[r * left_row] * across[v];
  }
#pragma GCC unroll 8
  for (std::size_t r = 0; r < rows; ++r)
#pragma GCC unroll 8
    for (std::size_t v = 0; v < vectors; ++v)
      reinterpret_cast<Unaligned<T, bytes>*>(out + r * out_row + v * lanes)->vector = sums[r][v];
}

/// Computes the first `width` columns of a tile.
template <class T, std::size_t bytes, std::size_t rows>
[[gnu::always_inline]] inline void tile(const Product<T>& p, std::size_t row, std::size_t column,
                                        std::size_t width) {
  T* out = p.out + row * p.out_row + column;
  const T* left = p.left + row * p.left_row;
  const T* right = p.right + column;
  if (width == tile_columns && p.adds) {
    add_products<T, bytes, rows>(left, p.left_row, p.left_depth, right, p.right_row, p.depth, out, p.out_row);
    return;
  }
  T sums[rows * tile_columns] = {};
  if (p.adds)
    for (std::size_t r = 0; r < rows; ++r)
      std::memcpy(sums + r * tile_columns, out + r * p.out_row, width * sizeof(T));
  add_products<T, bytes, rows>(left, p.left_row, p.left_depth, right, p.right_row, p.depth, sums,
                               tile_columns);
  for (std::size_t r = 0; r < rows; ++r)
    std::memcpy(out + r * p.out_row, sums + r * tile_columns, width * sizeof(T));
}

template <class T, std::size_t bytes, std::size_t tile_rows>
[[gnu::always_inline]] inline void strip(const Product<T>& p, std::size_t column, std::size_t width) {
  const std::size_t whole = p.rows / tile_rows * tile_rows;
  for (std::size_t row = 0; row < whole; row += tile_rows) tile<T, bytes, tile_rows>(p, row, column, width);
  for (std::size_t row = whole; row < p.rows; ++row) tile<T, bytes, 1>(p, row, column, width);
}

template <class T, std::size_t bytes, std::size_t tile_rows>
[[gnu::always_inline]] inline void multiply_by(const Product<T>& p) {
  const std::size_t whole = p.columns / tile_columns * tile_columns;
  for (std::size_t column = 0; column < whole; column += tile_columns)
    strip<T, bytes, tile_rows>(p, column, tile_columns);
  if (whole < p.columns) strip<T, bytes, tile_rows>(p, whole, p.columns - whole);
}

template <class T>
void multiply_by_any(const Product<T>& p) {
  multiply_by<T, 16, 2>(p);
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
template <class T>
__attribute__((target("avx2"))) void multiply_by_avx2(const Product<T>& p) {
  multiply_by<T, 32, 4>(p);
}

template <class T>
__attribute__((target("avx512f"))) void multiply_by_avx512(const Product<T>& p) {
  multiply_by<T, 64, 8>(p);
}

template <class T>
auto widest() -> void (*)(const Product<T>&) {
  if (__builtin_cpu_supports("avx512f")) return multiply_by_avx512<T>;
  if (__builtin_cpu_supports("avx2")) return multiply_by_avx2<T>;
  return multiply_by_any<T>;
}
#else
template <class T>
auto widest() -> void (*)(const Product<T>&) {
  return multiply_by_any<T>;
}
#endif

}  // namespace

void multiply(const Product<float>& product) {
  static const auto way = widest<float>();
  way(product);
}

void multiply(const Product<double>& product) {
  static const auto way = widest<double>();
  way(product);
}

}  // namespace rivulet::devices
