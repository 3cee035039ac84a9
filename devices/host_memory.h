#pragma once
#include <cstddef>
#include <memory>

#include "core/gradient_view.h"
#include "core/result.h"
#include "devices/device.h"

namespace rivulet::devices {

/// Allocates zeroed host memory on a 64-byte boundary, so that vector code gives the same bits at every
/// address. Errors: unavailable (out of memory, with the size).
Result<std::unique_ptr<Memory>> allocate_host_memory(std::size_t bytes);

/// Copies the values of `from` to `to`, both host-readable and of equal size. No-op if they are the same
/// memory.
void copy_host_numbers(const GradientView& from, const GradientView& to);

/// Calls change(GradientView) on a device's values in host-readable memory. Errors: the device's.
template <class Change>
Status change_on_host(Device& device, const GradientView& own, const Change& change) {
  auto host = device.to_host(own);
  if (!host) return host.error();
  change(host.value());
  return device.from_host(host.value(), own);
}

}  // namespace rivulet::devices
