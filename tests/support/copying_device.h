#pragma once
#include <cstdint>
#include <memory>

#include "devices/device.h"
#include "devices/trainer.h"

namespace rivulet::testing {

/// Simulates device memory that the host cannot read, like a GPU's. It is host memory, but its views are
/// marked MemoryKind::device: reading one without to_host() aborts. to_host() and from_host() copy; the next
/// to_host() frees the last copy.
class CopyingDevice final : public devices::Device {
 public:
  CopyingDevice() : host_(devices::make_host_device()) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "copying"; }
  Result<std::unique_ptr<devices::Memory>> allocate(std::size_t bytes) override;
  Result<std::unique_ptr<devices::Memory>> allocate_shared(std::size_t bytes) override;
  Result<GradientView> to_host(const GradientView& own) override;
  Status from_host(const GradientView& host, const GradientView& own) override;
  void charge(const devices::Work&) override {}

  [[nodiscard]] std::uint64_t copies_to_host() const noexcept { return copies_to_host_; }
  [[nodiscard]] std::uint64_t copies_from_host() const noexcept { return copies_from_host_; }

  /// The view for a kernel on this device: the same values without the mark. Aborts on host memory.
  static GradientView kernel_view(const GradientView& own);

 private:
  std::unique_ptr<devices::Device> host_;
  std::unique_ptr<devices::Memory> staging_;
  std::uint64_t copies_to_host_ = 0;
  std::uint64_t copies_from_host_ = 0;
};

/// `linear` on a CopyingDevice; rejects other devices. Not in the product's catalog.
extern const devices::ModelEntry copying_linear;

}  // namespace rivulet::testing
