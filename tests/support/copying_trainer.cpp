// `linear` as on a device: its kernels (the host trainer) work on unmarked views of device memory.
#include <cstring>
#include <utility>

#include "tests/support/copying_device.h"
#include "tests/support/model_fixture.h"

namespace rivulet::testing {
namespace {

using devices::ModelState;
using devices::StepReport;

void copy_kernel(const GradientView& from, const GradientView& to) {
  if (from.count > 0) std::memcpy(to.data, from.data, from.bytes());
}

/// A state belongs to the memory of one device, so the wrapped trainer works on a copy in host memory.
class CopyingTrainer final : public devices::Trainer {
 public:
  CopyingTrainer(std::unique_ptr<devices::Trainer> linear, ModelState twin)
      : linear_(std::move(linear)), twin_(std::move(twin)) {}
  [[nodiscard]] const devices::ModelLayout& layout() const noexcept override { return linear_->layout(); }

  Status initialize(ModelState& state, std::uint64_t seed) override {
    if (Status done = linear_->initialize(twin_, seed); !done) return done;
    write(state);
    return ok();
  }
  Result<StepReport> compute_gradients(const ModelState& state, const BatchView& batch,
                                       GradientView out) override {
    read(state);
    return linear_->compute_gradients(twin_, batch, CopyingDevice::kernel_view(out));
  }
  Result<StepReport> evaluate(const ModelState& state, const BatchView& batch) override {
    read(state);
    return linear_->evaluate(twin_, batch);
  }
  Result<std::vector<float>> predict(const ModelState& state, const BatchView& batch) override {
    read(state);
    return linear_->predict(twin_, batch);
  }

 private:
  void read(const ModelState& state) {
    copy_kernel(CopyingDevice::kernel_view(state.parameters()), twin_.parameters());
    copy_kernel(CopyingDevice::kernel_view(state.optimizer_array(0)), twin_.optimizer_array(0));
    copy_kernel(CopyingDevice::kernel_view(state.buffers()), twin_.buffers());
  }
  void write(ModelState& state) const {
    copy_kernel(twin_.parameters(), CopyingDevice::kernel_view(state.parameters()));
    copy_kernel(twin_.optimizer_array(0), CopyingDevice::kernel_view(state.optimizer_array(0)));
    copy_kernel(twin_.buffers(), CopyingDevice::kernel_view(state.buffers()));
  }

  std::unique_ptr<devices::Trainer> linear_;
  ModelState twin_;
};

Result<std::unique_ptr<devices::Trainer>> make(const devices::ModelConfig& config, devices::Device& device) {
  if (dynamic_cast<CopyingDevice*>(&device) == nullptr) {
    return Error{ErrorCode::invalid_config,
                 "model.name = \"copying_linear\" runs on the copying device only"};
  }
  auto host = devices::make_host_device();
  auto linear = model_entry("linear").make(config, *host);
  if (!linear) return linear.error();
  auto twin = ModelState::create(linear.value()->layout(), *host);
  if (!twin) return twin.error();
  return std::unique_ptr<devices::Trainer>(
      std::make_unique<CopyingTrainer>(std::move(linear).value(), std::move(twin).value()));
}

}  // namespace

const devices::ModelEntry copying_linear{"copying_linear", "linear on the copying device", make};

}  // namespace rivulet::testing
