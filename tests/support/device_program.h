#pragma once
#include <span>

#include "runtime/node/catalog.h"
#include "runtime/node/run.h"

namespace rivulet::testing {

/// The end of a main() that does what `rivulet run` does, with a catalog of its own. `arguments`: CONFIG
/// [KEY=VALUE ...]. Says its summary or why there is none; the exit status.
int run_device_program(std::span<char*> arguments, const runtime::RunOptions& options,
                       const runtime::Catalog& catalog);

}  // namespace rivulet::testing
