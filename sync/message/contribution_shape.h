#pragma once
#include <cstddef>
#include <numeric>
#include <vector>

#include "core/gradient_view.h"

namespace rivulet::sync {

/// Layout of a contribution: parameters, tensor by tensor, followed by buffers, which are averages and are
/// never compressed.
struct ContributionShape {
  Scalar scalar = Scalar::f32;
  std::vector<std::size_t> tensors;  ///< elements of each parameter tensor, in order
  std::size_t buffers = 0;
  /// First dimension of each tensor, to view it as a matrix. 1 or missing: not a matrix.
  std::vector<std::size_t> rows = {};
  [[nodiscard]] std::size_t parameters() const noexcept {
    return std::accumulate(tensors.begin(), tensors.end(), std::size_t{0});
  }
  [[nodiscard]] std::size_t count() const noexcept { return parameters() + buffers; }  ///< P + B
  [[nodiscard]] std::size_t bytes() const noexcept { return count() * bytes_of(scalar); }
  [[nodiscard]] std::size_t buffer_bytes() const noexcept { return buffers * bytes_of(scalar); }
};

}  // namespace rivulet::sync
