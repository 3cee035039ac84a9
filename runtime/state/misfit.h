#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/gradient_view.h"
#include "runtime/state/state_image.h"

namespace rivulet::runtime {

/// What an image names itself to be of.
struct ImageFacts {
  StateOwner owner;
  Scalar scalar = Scalar::f32;
  std::uint64_t parameters = 0;
  std::uint64_t buffers = 0;
  std::vector<std::string> optimizer_arrays;
};

/// Why a whole image is not one of this device: another job or model, topics whose numbers mean others,
/// numbers that mean something else, another shape or optimizer. Names what the image has and what is here,
/// the most telling first; nullopt: it is this device's. Pure.
std::optional<std::string> misfit_of(const ImageFacts& found, const Expected& expected);

}  // namespace rivulet::runtime
