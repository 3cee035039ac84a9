#pragma once
#include <cstddef>
#include <memory>

#include "core/clock.h"
#include "devices/device.h"

namespace rivulet::devices {

/// What a simulated device costs: seconds(rows) = fixed + rows / rows_per_second; no rows cost nothing.
struct DeviceProfile {
  Duration fixed = std::chrono::milliseconds(1);
  double rows_per_second = 8000;
};
/// Of a batch.
Duration seconds_of(const DeviceProfile& profile, std::size_t rows) noexcept;

/// Computes on the host at once and moves `clock` by what it would have taken by the profile.
std::unique_ptr<Device> make_modeled_device(const DeviceProfile&, VirtualClock& clock);

}  // namespace rivulet::devices
