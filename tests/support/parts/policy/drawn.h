#pragma once
#include <string_view>

#include "core/rng.h"
#include "sync/policy/controller.h"
#include "tests/support/effort.h"

namespace rivulet::testing {

/// A generator with equal values on all devices in a round, and others in the next; RIVULET_SEED.
inline Rng drawn_for(const sync::policy::Inputs& in, std::string_view purpose) {
  static const std::uint64_t seed = seed_or(1);
  return Rng::derive(seed, purpose, 100'000 * in.table.facts[0].step + in.round);
}

}  // namespace rivulet::testing
