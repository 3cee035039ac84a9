#include "devices/modeled_device.h"

#include "devices/host_memory.h"

namespace rivulet::devices {
namespace {

class ModeledDevice final : public Device {
 public:
  ModeledDevice(const DeviceProfile& profile, VirtualClock& clock) : profile_(profile), clock_(clock) {
    RIVULET_CHECK(profile.rows_per_second > 0, "rows_per_second of the device must be positive");
  }
  [[nodiscard]] std::string_view name() const noexcept override { return "modeled"; }
  Result<std::unique_ptr<Memory>> allocate(std::size_t bytes) override { return allocate_host_memory(bytes); }
  Result<std::unique_ptr<Memory>> allocate_shared(std::size_t bytes) override {
    return allocate_host_memory(bytes);
  }
  Result<GradientView> to_host(const GradientView& own) override { return own; }
  Status from_host(const GradientView& host, const GradientView& own) override {
    copy_host_numbers(host, own);
    return ok();
  }
  void charge(const Work& work) override { clock_.advance_by(seconds_of(profile_, work.rows)); }

 private:
  DeviceProfile profile_;
  VirtualClock& clock_;
};

}  // namespace

Duration seconds_of(const DeviceProfile& profile, std::size_t rows) noexcept {
  if (rows == 0) return Duration::zero();
  return profile.fixed + from_seconds(static_cast<double>(rows) / profile.rows_per_second);
}

std::unique_ptr<Device> make_modeled_device(const DeviceProfile& profile, VirtualClock& clock) {
  return std::make_unique<ModeledDevice>(profile, clock);
}

}  // namespace rivulet::devices
