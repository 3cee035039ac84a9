#pragma once
#include <string>

#include "core/time.h"

namespace rivulet::runtime {

/// Installs the signal handler that writes a stack, and loads what unwinding needs while memory can still be
/// had.
void prepare_stack_dump();

/// Writes `why` and then name, id and stack of every thread of this process to stderr, one after the other,
/// and ends the process with ExitCode::watchdog, after `limit` at the latest whatever happens (a full pipe, a
/// thread that blocks signals). Allocates nothing: a stalled thread may hold the allocator's lock. Needs
/// prepare_stack_dump().
[[noreturn]] void dump_stacks_and_exit(const std::string& why, Duration limit) noexcept;

}  // namespace rivulet::runtime
