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

/// Why a complete image does not fit this device: another job or model, other topics under the same numbers,
/// values with another meaning, another shape or optimizer. States the image's value and the local one, the
/// most informative difference first. nullopt: it fits. Pure.
std::optional<std::string> misfit_of(const ImageFacts& found, const Expected& expected);

}  // namespace rivulet::runtime
