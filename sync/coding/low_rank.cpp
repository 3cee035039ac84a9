#include "sync/coding/low_rank.h"

#include <algorithm>
#include <cmath>

#include "core/rng.h"

namespace rivulet::sync {
namespace {

/// Sums in fixed lanes, so that compilers may use vectors of any length with the same result.
template <class T>
double dot(const T* a, const T* b, std::size_t count) {
  constexpr std::size_t lanes = 8;
  double sums[lanes] = {};
  const std::size_t whole = count / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane)
      sums[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
  double sum = 0;
  for (std::size_t i = whole; i < count; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  for (const double lane : sums) sum += lane;
  return sum;
}

/// y += a x
template <class T>
void add_multiple(T a, const T* __restrict x, std::size_t count, T* __restrict y) {
  for (std::size_t i = 0; i < count; ++i) y[i] += a * x[i];
}

/// Calls f(matrix, offset of its P, offset of its Q) for each matrix that has them.
template <class F>
void for_each_product(const LowRankLayout& layout, F f) {
  std::size_t left = 0;
  std::size_t right = 0;
  for (const LowRankMatrix& m : layout.matrices()) {
    if (m.rank == 0) continue;
    f(m, left, right);
    left += m.rank * m.rows;
    right += m.rank * m.columns;
  }
}

/// Removes from column k its projections on earlier columns. Twice, because a small remainder of a large
/// column is mostly rounding noise.
template <class T>
void remove_parts(std::span<T> columns, std::size_t rows, std::size_t k) {
  T* own = columns.data() + k * rows;
  for (int pass = 0; pass < 2; ++pass)
    for (std::size_t j = 0; j < k; ++j) {
      const T* other = columns.data() + j * rows;
      add_multiple(static_cast<T>(-dot(own, other, rows)), other, rows, own);
    }
}

template <class T>
double length_of(std::span<const T> numbers) {
  return std::sqrt(dot(numbers.data(), numbers.data(), numbers.size()));
}

}  // namespace

LowRankLayout::LowRankLayout(const ContributionShape& shape, std::size_t rank) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < shape.tensors.size(); ++i) {
    const std::size_t count = shape.tensors[i];
    const std::size_t rows = i < shape.rows.size() && shape.rows[i] > 0 ? shape.rows[i] : 1;
    LowRankMatrix m{begin, rows, count / rows, std::min({rank, rows, count / rows})};
    if (m.count() != count || m.rank * (m.rows + m.columns) >= count) m = {begin, 1, count, 0};
    left_ += m.rank * m.rows;
    right_ += m.rank * m.columns;
    if (m.rank == 0) whole_ += count;
    matrices_.push_back(m);
    begin += count;
  }
}

template <class T>
void renew_right(const LowRankLayout& layout, std::uint64_t seed, std::span<T> right) {
  for_each_product(layout, [&](const LowRankMatrix& m, std::size_t, std::size_t q) {
    for (std::size_t k = 0; k < m.rank; ++k) {
      const std::span<T> column = right.subspan(q + k * m.columns, m.columns);
      const double squares = dot(column.data(), column.data(), m.columns);
      if (squares > 0 && std::isfinite(squares)) continue;
      Rng rng(derive_seed(seed, "low rank", q + k * m.columns));
      for (T& x : column) x = static_cast<T>(2 * rng.uniform() - 1);
    }
  });
}

template <class T>
void multiply_right(const LowRankLayout& layout, std::span<const T> numbers, std::span<const T> right,
                    std::span<T> left) {
  for_each_product(layout, [&](const LowRankMatrix& m, std::size_t p, std::size_t q) {
    for (std::size_t k = 0; k < m.rank; ++k)
      for (std::size_t i = 0; i < m.rows; ++i)
        left[p + k * m.rows + i] = static_cast<T>(
            dot(numbers.data() + m.begin + i * m.columns, right.data() + q + k * m.columns, m.columns));
  });
}

template <class T>
void multiply_left(const LowRankLayout& layout, std::span<const T> numbers, std::span<const T> left,
                   std::span<T> right) {
  std::ranges::fill(right, T{0});
  for_each_product(layout, [&](const LowRankMatrix& m, std::size_t p, std::size_t q) {
    for (std::size_t i = 0; i < m.rows; ++i)
      for (std::size_t k = 0; k < m.rank; ++k)
        add_multiple(left[p + k * m.rows + i], numbers.data() + m.begin + i * m.columns, m.columns,
                     right.data() + q + k * m.columns);
  });
}

template <class T>
void orthonormalize(const LowRankLayout& layout, std::span<T> left) {
  constexpr double nothing = 1e-6;
  for_each_product(layout, [&](const LowRankMatrix& m, std::size_t p, std::size_t) {
    const std::span<T> columns = left.subspan(p, m.rank * m.rows);
    for (std::size_t k = 0; k < m.rank; ++k) {
      const std::span<T> own = columns.subspan(k * m.rows, m.rows);
      const double before = length_of<T>(own);
      remove_parts(columns, m.rows, k);
      const double length = length_of<T>(own);
      const bool depends = std::isfinite(before) && length <= nothing * before;
      for (T& x : own) x = depends ? T{0} : static_cast<T>(static_cast<double>(x) / length);
    }
  });
}

template <class T>
void add_product(const LowRankLayout& layout, std::span<const T> left, std::span<const T> right,
                 double weight, std::span<T> into) {
  for_each_product(layout, [&](const LowRankMatrix& m, std::size_t p, std::size_t q) {
    for (std::size_t i = 0; i < m.rows; ++i)
      for (std::size_t k = 0; k < m.rank; ++k)
        add_multiple(static_cast<T>(weight * static_cast<double>(left[p + k * m.rows + i])),
                     right.data() + q + k * m.columns, m.columns, into.data() + m.begin + i * m.columns);
  });
}

template <class T>
void take_whole(const LowRankLayout& layout, std::span<const T> numbers, std::span<T> whole) {
  std::size_t at = 0;
  for (const LowRankMatrix& m : layout.matrices()) {
    if (m.rank > 0) continue;
    std::ranges::copy(numbers.subspan(m.begin, m.count()), whole.begin() + static_cast<std::ptrdiff_t>(at));
    at += m.count();
  }
}

template <class T>
void add_whole(const LowRankLayout& layout, std::span<const T> whole, double weight, std::span<T> into) {
  std::size_t at = 0;
  for (const LowRankMatrix& m : layout.matrices()) {
    if (m.rank > 0) continue;
    for (std::size_t i = 0; i < m.count(); ++i)
      into[m.begin + i] += static_cast<T>(weight * static_cast<double>(whole[at + i]));
    at += m.count();
  }
}

#define RIVULET_LOW_RANK_OF(T)                                                                       \
  template void renew_right<T>(const LowRankLayout&, std::uint64_t, std::span<T>);                   \
  template void multiply_right<T>(const LowRankLayout&, std::span<const T>, std::span<const T>,      \
                                  std::span<T>);                                                     \
  template void multiply_left<T>(const LowRankLayout&, std::span<const T>, std::span<const T>,       \
                                 std::span<T>);                                                      \
  template void orthonormalize<T>(const LowRankLayout&, std::span<T>);                               \
  template void add_product<T>(const LowRankLayout&, std::span<const T>, std::span<const T>, double, \
                               std::span<T>);                                                        \
  template void take_whole<T>(const LowRankLayout&, std::span<const T>, std::span<T>);               \
  template void add_whole<T>(const LowRankLayout&, std::span<const T>, double, std::span<T>)
RIVULET_LOW_RANK_OF(float);
RIVULET_LOW_RANK_OF(double);
#undef RIVULET_LOW_RANK_OF

}  // namespace rivulet::sync
