#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/settings.h"
#include "sync/message/contribution_shape.h"

/// Matrices as products of two thin ones, as PowerSGD sends them (Vogels et al., NeurIPS 2019): M is about
/// P Q^T, P of orthonormal columns. Pure; any thread. The same bits on every machine, from the same bits.
namespace rivulet::sync {

/// A tensor of a contribution, row by row.
struct LowRankMatrix {
  std::size_t begin = 0;  ///< in the parameters
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t rank = 0;  ///< columns of P and Q; 0: its numbers are sent as they are
  [[nodiscard]] std::size_t count() const noexcept { return rows * columns; }
};

/// Where the tensors of a contribution lie, and what they become at a rank: whole where the thin matrices
/// would not be smaller.
class LowRankLayout {
 public:
  LowRankLayout() = default;
  LowRankLayout(const ContributionShape& shape, std::size_t rank);
  /// At the rank that is set.
  LowRankLayout(const ContributionShape& shape, const Settings& settings)
      : LowRankLayout(shape, static_cast<std::size_t>(settings.integer(rank_key))) {}
  static constexpr std::string_view rank_key = "compression.low_rank.rank";
  [[nodiscard]] std::span<const LowRankMatrix> matrices() const noexcept { return matrices_; }
  [[nodiscard]] std::size_t left() const noexcept { return left_; }    ///< numbers of all P, column by column
  [[nodiscard]] std::size_t right() const noexcept { return right_; }  ///< ... of all Q, column by column
  [[nodiscard]] std::size_t whole() const noexcept { return whole_; }  ///< ... that are sent as they are

 private:
  std::vector<LowRankMatrix> matrices_;
  std::size_t left_ = 0;
  std::size_t right_ = 0;
  std::size_t whole_ = 0;
};

/// Columns of Q that are 0 or no numbers are drawn anew, from -1 to 1, the same for the same seed: a matrix
/// that was 0 in one round would be 0 for ever.
template <class T>
void renew_right(const LowRankLayout& layout, std::uint64_t seed, std::span<T> right);
/// left = M Q of each matrix. 2 P rank operations.
template <class T>
void multiply_right(const LowRankLayout& layout, std::span<const T> numbers, std::span<const T> right,
                    std::span<T> left);
/// right = M^T P.
template <class T>
void multiply_left(const LowRankLayout& layout, std::span<const T> numbers, std::span<const T> left,
                   std::span<T> right);
/// The columns of each P become orthonormal (Gram-Schmidt); those that depend on others become 0, and none is
/// a number if one was not.
template <class T>
void orthonormalize(const LowRankLayout& layout, std::span<T> left);
/// into += weight * P Q^T, of each matrix; the others as they are.
template <class T>
void add_product(const LowRankLayout& layout, std::span<const T> left, std::span<const T> right,
                 double weight, std::span<T> into);
/// The numbers that are sent as they are, in their order; and back: into += weight * them.
template <class T>
void take_whole(const LowRankLayout& layout, std::span<const T> numbers, std::span<T> whole);
template <class T>
void add_whole(const LowRankLayout& layout, std::span<const T> whole, double weight, std::span<T> into);

}  // namespace rivulet::sync
