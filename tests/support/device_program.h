#pragma once
#include <span>

#include "runtime/node/catalog.h"
#include "runtime/node/run.h"

namespace rivulet::testing {

/// End of a main() that works like `rivulet run` with its own catalog. `arguments`: CONFIG [KEY=VALUE ...].
/// Prints the summary or the error, and returns the exit status.
int run_device_program(std::span<char*> arguments, const runtime::RunOptions& options,
                       const runtime::Catalog& catalog);

}  // namespace rivulet::testing
