#pragma once
#include <set>
#include <string>

#include "runtime/config/layers.h"

/// Checks beyond a single key: formats of values and contradictions between keys (private to config/).
namespace rivulet::runtime {

/// A configuration in which each key by itself is valid, with its input and the keys set explicitly.
struct Checked {
  const ConfigInput& input;
  const Config& config;
  const SettingsByKey& written;
  const std::set<std::string>& failed;  ///< keys already reported: their defaults are not checked
};
void check_all(const Checked& checked, const CatalogNames& catalog, Problems& problems);

}  // namespace rivulet::runtime
