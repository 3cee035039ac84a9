#pragma once
#include <cstddef>
#include <numeric>
#include <vector>

#include "core/gradient_view.h"

namespace rivulet::sync {

/// What a contribution looks like: parameters, tensor by tensor, and behind them buffers, which are averages
/// and travel as they are.
struct ContributionShape {
  Scalar scalar = Scalar::f32;
  std::vector<std::size_t> tensors;  ///< elements of each tensor of parameters, in their order
  std::size_t buffers = 0;
  /// Of each tensor its first dimension, behind which it is a matrix; 1 or nothing: it is none.
  std::vector<std::size_t> rows = {};
  [[nodiscard]] std::size_t parameters() const noexcept {
    return std::accumulate(tensors.begin(), tensors.end(), std::size_t{0});
  }
  [[nodiscard]] std::size_t count() const noexcept { return parameters() + buffers; }  ///< P + B
  [[nodiscard]] std::size_t bytes() const noexcept { return count() * bytes_of(scalar); }
  [[nodiscard]] std::size_t buffer_bytes() const noexcept { return buffers * bytes_of(scalar); }
};

}  // namespace rivulet::sync
