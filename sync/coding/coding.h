#pragma once
#include <cstdint>

#include "core/settings.h"
#include "sync/message/contribution_shape.h"

namespace rivulet::sync {

/// Parameters of the slots of a round, known to all devices in advance.
struct Coding {
  const ContributionShape* shape = nullptr;
  double keep_ratio = 1.0;
  std::uint64_t draw = 0;              ///< random draw of the round, the same on all devices
  const Settings* settings = nullptr;  ///< values of the compressor's own keys
};

}  // namespace rivulet::sync
