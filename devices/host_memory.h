#pragma once
#include <cstddef>
#include <memory>

#include "core/gradient_view.h"
#include "core/result.h"
#include "devices/device.h"

namespace rivulet::devices {

/// Zeroed memory of the host, on a 64-byte boundary so that vector code gives the same bits wherever it lies.
/// Errors: unavailable (out of memory, with the size).
Result<std::unique_ptr<Memory>> allocate_host_memory(std::size_t bytes);

/// Copies the numbers of `from` to `to`, both readable by the host and of one size; nothing to do when they
/// are the same memory.
void copy_host_numbers(const GradientView& from, const GradientView& to);

}  // namespace rivulet::devices
