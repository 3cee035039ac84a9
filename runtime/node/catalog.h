#pragma once
#include <span>

#include "devices/optimizer.h"
#include "devices/trainer.h"
#include "stream/decoder.h"
#include "sync/round/session.h"

namespace rivulet::runtime {

/// Everything that can be chosen by name. Wirings use the built-in catalog; tests add entries.
struct Catalog {
  std::span<const stream::DecoderEntry* const> decoders;
  std::span<const devices::ModelEntry* const> models;
  std::span<const devices::OptimizerEntry* const> optimizers;
  sync::SyncCatalog sync;
};
Catalog builtin_catalog();

}  // namespace rivulet::runtime
