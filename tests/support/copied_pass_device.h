#pragma once
#include <memory>

#include "devices/device.h"

namespace rivulet::testing {

/// The host, with the properties of a GPU: a trainer copies values for a pass, and takes rows in buckets.
class CopiedPassDevice final : public devices::Device {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "copied passes"; }
  Result<std::unique_ptr<devices::Memory>> allocate(std::size_t bytes) override {
    return host_->allocate(bytes);
  }
  Result<std::unique_ptr<devices::Memory>> allocate_shared(std::size_t bytes) override {
    return host_->allocate_shared(bytes);
  }
  Result<GradientView> to_host(const GradientView& own) override { return host_->to_host(own); }
  Status from_host(const GradientView& host, const GradientView& own) override {
    return host_->from_host(host, own);
  }
  [[nodiscard]] devices::ComputePlace computes_on() const noexcept override {
    return {.copies_arrays = true};
  }
  void charge(const devices::Work& work) override { host_->charge(work); }

 private:
  std::unique_ptr<devices::Device> host_ = devices::make_host_device();
};

}  // namespace rivulet::testing
