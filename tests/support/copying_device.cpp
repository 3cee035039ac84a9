#include "tests/support/copying_device.h"

#include <cstring>
#include <utility>

namespace rivulet::testing {
namespace {

class DeviceMemory final : public devices::Memory {
 public:
  explicit DeviceMemory(std::unique_ptr<devices::Memory> host) : host_(std::move(host)) {}
  [[nodiscard]] std::size_t bytes() const noexcept override { return host_->bytes(); }
  [[nodiscard]] GradientView view(Scalar scalar, std::size_t count) const override {
    GradientView v = host_->view(scalar, count);
    v.memory = MemoryKind::device;
    v.device = 0;
    return v;
  }

 private:
  std::unique_ptr<devices::Memory> host_;
};

}  // namespace

Result<std::unique_ptr<devices::Memory>> CopyingDevice::allocate(std::size_t bytes) {
  auto host = host_->allocate(bytes);
  if (!host) return host.error();
  return std::unique_ptr<devices::Memory>(std::make_unique<DeviceMemory>(std::move(host).value()));
}

Result<std::unique_ptr<devices::Memory>> CopyingDevice::allocate_shared(std::size_t bytes) {
  return host_->allocate_shared(bytes);
}

Result<GradientView> CopyingDevice::to_host(const GradientView& own) {
  auto fresh = host_->allocate(own.bytes());
  if (!fresh) return fresh.error();
  const GradientView host = fresh.value()->view(own.scalar, own.count);
  std::memcpy(host.data, kernel_view(own).data, own.bytes());
  staging_ = std::move(fresh).value();  // frees the last copy: ASan detects a late read
  ++copies_to_host_;
  return host;
}

Status CopyingDevice::from_host(const GradientView& host, const GradientView& own) {
  RIVULET_CHECK(host.count == own.count && host.scalar == own.scalar, "arrays differ in shape");
  std::memcpy(kernel_view(own).data, host.host_bytes().data(), own.bytes());
  ++copies_from_host_;
  return ok();
}

GradientView CopyingDevice::kernel_view(const GradientView& own) {
  RIVULET_CHECK(own.memory == MemoryKind::device, "host memory given to a kernel");
  GradientView v = own;
  v.memory = MemoryKind::host;
  v.device = -1;
  return v;
}

}  // namespace rivulet::testing
