#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/digest.h"
#include "core/gradient_view.h"
#include "core/result.h"
#include "devices/device.h"

namespace rivulet::devices {

/// One named tensor inside a flat array: begin .. begin + product(shape).
struct TensorSlot {
  std::string name;
  std::vector<std::int64_t> shape;
  std::size_t begin = 0;
  std::size_t count = 0;
};

/// Where everything lies. Pure data; equal for all devices of a job.
struct ModelLayout {
  Scalar scalar = Scalar::f32;
  std::size_t parameters = 0;  ///< P
  std::size_t buffers = 0;     ///< B, e.g. batch-norm running statistics
  std::vector<TensorSlot> parameter_slots;
  std::vector<TensorSlot> buffer_slots;
  /// Batch norm's counts of batches: whole numbers that no device averages, all equal to the steps made.
  std::vector<std::string> batch_counts = {};
  /// What the optimizer remembers, P numbers each, by the names that it gives them.
  std::vector<std::string> optimizer_arrays = {"momentum"};
  [[nodiscard]] std::size_t contribution() const noexcept { return parameters + buffers; }  ///< P + B
};

/// The trained numbers, apart from whoever computes on them: flat arrays that a Device allocated.
/// parameters [P], what the optimizer remembers [P each], buffers [B]. A value: copies are deep (copy_from),
/// never implicit. Owner: the train thread; a snapshot is its own ModelState.
class ModelState {
 public:
  /// Zeroed. Errors: unavailable (memory).
  static Result<ModelState> create(const ModelLayout& layout, Device& device);
  /// Over arrays that are another state's, of which a layout with fewer buffers sees only the first. Lives no
  /// longer than that state.
  static ModelState over(const ModelLayout& layout, const ModelState& whole);
  ModelState(ModelState&&) noexcept = default;
  ModelState& operator=(ModelState&&) noexcept = default;

  [[nodiscard]] const ModelLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] GradientView parameters() const {
    return parameters_->view(layout_.scalar, layout_.parameters);
  }
  [[nodiscard]] GradientView optimizer_array(std::size_t i) const {
    return optimizer_arrays_.at(i)->view(layout_.scalar, layout_.parameters);
  }
  [[nodiscard]] GradientView buffers() const { return buffers_->view(layout_.scalar, layout_.buffers); }
  /// All of them: parameters, what the optimizer remembers, buffers.
  [[nodiscard]] std::vector<GradientView> arrays() const;
  void zero_optimizer();
  /// Feeds arrays() into a hash, in that order. Needs host-readable views from the device.
  Status hash_into(Hasher& hasher, Device& device) const;
  /// Copies all arrays. Both must have equal layouts and host-readable memory.
  void copy_from(const ModelState& other);

 private:
  ModelState() = default;
  ModelLayout layout_;
  std::unique_ptr<Memory> parameters_;
  std::vector<std::unique_ptr<Memory>> optimizer_arrays_;
  std::unique_ptr<Memory> buffers_;
};

}  // namespace rivulet::devices
