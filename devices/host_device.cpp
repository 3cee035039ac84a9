#include "devices/device.h"
#include "devices/host_memory.h"

namespace rivulet::devices {
namespace {

class HostDevice final : public Device {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "host"; }
  Result<std::unique_ptr<Memory>> allocate(std::size_t bytes) override { return allocate_host_memory(bytes); }
  Result<std::unique_ptr<Memory>> allocate_shared(std::size_t bytes) override {
    return allocate_host_memory(bytes);
  }
  Result<GradientView> to_host(const GradientView& own) override { return own; }
  Status from_host(const GradientView& host, const GradientView& own) override {
    copy_host_numbers(host, own);
    return ok();
  }
  void charge(const Work&) override {}  // the real computation has already taken its time
};

}  // namespace

std::unique_ptr<Device> make_host_device() {
  return std::make_unique<HostDevice>();
}

}  // namespace rivulet::devices
