#pragma once
#include <filesystem>

#include "tests/support/tree.h"

namespace rivulet::testing {

/// Finds catalog names outside their entries. Only an entry's file and the configuration defaults may contain
/// the name of a model, optimizer, compressor, collective or controller. All other code reads properties of
/// entries.
Findings check_entry_names(const std::filesystem::path& root);

}  // namespace rivulet::testing
