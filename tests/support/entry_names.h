#pragma once
#include <filesystem>

#include "tests/support/tree.h"

namespace rivulet::testing {

/// Models, optimizers, compressors, collectives and controllers are named by their own files, and by the
/// defaults of a configuration: nobody else compares with such a name or passes it, for what others want to
/// know of an entry is a property of it.
Findings check_entry_names(const std::filesystem::path& root);

}  // namespace rivulet::testing
