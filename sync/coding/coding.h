#pragma once
#include <cstdint>

#include "core/settings.h"
#include "sync/message/contribution_shape.h"

namespace rivulet::sync {

/// What all devices know about the slots of a round, besides the bytes in them.
struct Coding {
  const ContributionShape* shape = nullptr;
  double keep_ratio = 1.0;
  std::uint64_t draw =
      0;  ///< for what is chosen by chance: another number in each round, the same everywhere
  const Settings* settings = nullptr;  ///< of the compressor's own keys
};

}  // namespace rivulet::sync
