#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/settings.h"
#include "sync/message/contribution_shape.h"

/// Low-rank approximation of matrices, as in PowerSGD (Vogels et al., NeurIPS 2019): M is replaced by P Q^T,
/// where P has orthonormal columns. Pure; any thread. Equal inputs give equal bits on every machine.
namespace rivulet::sync {

/// A tensor of a contribution as a row-major matrix.
struct LowRankMatrix {
  std::size_t begin = 0;  ///< offset in the parameters
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t rank = 0;  ///< columns of P and Q; 0: elements are sent unchanged
  [[nodiscard]] std::size_t count() const noexcept { return rows * columns; }
};

/// Offsets of a contribution's tensors, and their sizes at a rank. Tensors are sent unchanged if P and Q
/// would not be smaller.
class LowRankLayout {
 public:
  LowRankLayout() = default;
  LowRankLayout(const ContributionShape& shape, std::size_t rank);
  /// Uses the configured rank.
  LowRankLayout(const ContributionShape& shape, const Settings& settings)
      : LowRankLayout(shape, static_cast<std::size_t>(settings.integer(rank_key))) {}
  static constexpr std::string_view rank_key = "compression.low_rank.rank";
  [[nodiscard]] std::span<const LowRankMatrix> matrices() const noexcept { return matrices_; }
  [[nodiscard]] std::size_t left() const noexcept { return left_; }    ///< elements of all P, by column
  [[nodiscard]] std::size_t right() const noexcept { return right_; }  ///< elements of all Q, by column
  [[nodiscard]] std::size_t whole() const noexcept { return whole_; }  ///< elements sent unchanged

 private:
  std::vector<LowRankMatrix> matrices_;
  std::size_t left_ = 0;
  std::size_t right_ = 0;
  std::size_t whole_ = 0;
};

/// Replaces columns of Q that are 0 or non-finite with random values from -1 to 1, which depend only on the
/// seed. Otherwise a matrix that was 0 in one round would stay 0.
template <class T>
void renew_right(const LowRankLayout& layout, std::uint64_t seed, std::span<T> right);
/// left = M Q for each matrix. Takes 2 P rank operations.
template <class T>
void multiply_right(const LowRankLayout& layout, std::span<const T> numbers, std::span<const T> right,
                    std::span<T> left);
/// right = M^T P for each matrix.
template <class T>
void multiply_left(const LowRankLayout& layout, std::span<const T> numbers, std::span<const T> left,
                   std::span<T> right);
/// Orthonormalizes the columns of each P (Gram-Schmidt). Dependent columns become 0, and columns with
/// non-finite elements become non-finite.
template <class T>
void orthonormalize(const LowRankLayout& layout, std::span<T> left);
/// into += weight * P Q^T for each matrix. Other tensors are not changed.
template <class T>
void add_product(const LowRankLayout& layout, std::span<const T> left, std::span<const T> right,
                 double weight, std::span<T> into);
/// Copies the elements that are sent unchanged, in order. add_whole(): into += weight * those elements.
template <class T>
void take_whole(const LowRankLayout& layout, std::span<const T> numbers, std::span<T> whole);
template <class T>
void add_whole(const LowRankLayout& layout, std::span<const T> whole, double weight, std::span<T> into);

}  // namespace rivulet::sync
