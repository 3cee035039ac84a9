#include "sync/round/codec_shelf.h"

#include <algorithm>

#include "core/check.h"

namespace rivulet::sync {

CodecShelf::Item CodecShelf::find(std::string_view name) {
  const auto it = std::find_if(entries_.begin(), entries_.end(),
                               [&](const CodecEntry* entry) { return entry->name == name; });
  RIVULET_CHECK(it != entries_.end(), "the plan names a codec that is not in the catalog");
  auto& codec = made_[std::string(name)];
  if (!codec) codec = (*it)->make();
  return {codec.get(), *it};
}

}  // namespace rivulet::sync
