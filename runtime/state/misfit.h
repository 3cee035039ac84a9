#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/gradient_view.h"
#include "runtime/state/state_image.h"

namespace rivulet::runtime {

/// What an image contains, as described in the image itself.
struct ImageFacts {
  StateOwner owner;
  Scalar scalar = Scalar::f32;
  std::uint64_t parameters = 0;
  std::uint64_t buffers = 0;
  std::vector<std::string> optimizer_arrays;
};

/// Explains why a complete image does not fit this device: it has a different job or model, different topics
/// under the same numbers, or values with a different meaning, shape or optimizer. Gives the image's value
/// and the local one, for the most informative difference. nullopt if the image fits. Pure.
std::optional<std::string> misfit_of(const ImageFacts& found, const Expected& expected);

}  // namespace rivulet::runtime
