#pragma once
#include <string>

#include "core/time.h"

namespace rivulet::runtime {

/// Installs the signal handler that writes a stack, and loads the unwinder while memory allocation still
/// works.
void prepare_stack_dump();

/// Writes `why`, then name, id and stack of every thread to stderr, one thread at a time. Then exits with
/// ExitCode::watchdog, no later than after `limit`, even if a pipe is full or a thread blocks signals.
/// Allocates nothing: a stalled thread may hold the allocator's lock. Requires prepare_stack_dump().
[[noreturn]] void dump_stacks_and_exit(const std::string& why, Duration limit) noexcept;

}  // namespace rivulet::runtime
