#include "sync/round/compressor_cache.h"

#include <algorithm>

#include "core/check.h"

namespace rivulet::sync {

CompressorCache::Item CompressorCache::find(std::string_view name) {
  const auto it = std::find_if(entries_.begin(), entries_.end(),
                               [&](const CompressorEntry* entry) { return entry->name == name; });
  RIVULET_CHECK(it != entries_.end(), "the plan names a compressor that is not in the catalog");
  auto& compressor = made_[std::string(name)];
  if (!compressor) compressor = (*it)->make();
  return {compressor.get(), *it};
}

}  // namespace rivulet::sync
