#pragma once
#include <cstddef>
#include <memory>

#include "core/clock.h"
#include "devices/device.h"

namespace rivulet::devices {

/// Compute time of a simulated device: seconds(rows) = fixed + rows / rows_per_second; 0 for no rows.
struct DeviceProfile {
  Duration fixed = std::chrono::milliseconds(1);
  double rows_per_second = 8000;
};
/// Compute time of a batch.
Duration seconds_of(const DeviceProfile& profile, std::size_t rows) noexcept;

/// Computes on the host and advances `clock` by the compute time of the profile.
std::unique_ptr<Device> make_modeled_device(const DeviceProfile&, VirtualClock& clock);

}  // namespace rivulet::devices
