#pragma once
#include <set>
#include <string>

#include "runtime/config/layers.h"

/// What one key cannot know: formats of values and contradictions between keys (private to config/).
namespace rivulet::runtime {

/// A valid configuration so far, where it came from, and which keys were written at all.
struct Checked {
  const ConfigInput& input;
  const Config& config;
  const SettingsByKey& written;
  const std::set<std::string>& failed;  ///< keys with a complaint already: their defaults are not judged
};
void check_all(const Checked& checked, const CatalogNames& catalog, Problems& problems);

}  // namespace rivulet::runtime
