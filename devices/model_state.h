#pragma once
#include <cstdint>
#include <memory>
#include <span>
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

/// The columns of a row that a model sees normalized (devices/columns.h): features, then targets.
struct NormalizedColumns {
  std::size_t features = 0;  ///< 0: they come as they are
  std::size_t targets = 0;   ///< same
  double window = 10'000;    ///< rows of the group that mean and deviation are of
  double limit = 8;          ///< deviations beyond which a value is clipped
  /// The first two parameter tensors are a linear layer over the features: weight [n, features], bias [n].
  bool linear_first = false;
  /// The last two are a linear layer that gives the outputs: weight [targets, n], bias [targets].
  bool linear_last = false;
  [[nodiscard]] std::size_t size() const noexcept { return features + targets; }
};

/// What the group knows of one such column. In double, equal on all devices: agreed steps move it, no device
/// does.
struct Column {
  double rows = 0;  ///< that mean and variance are of, at most the window; 0: nothing is known
  double mean = 0;
  double variance = 0;
  /// A model sees (x - shown_mean) / shown_deviation. They follow mean and variance in steps.
  double shown_mean = 0;
  double shown_deviation = 0;  ///< 0: the column is at rest, and a model sees 0
  bool operator==(const Column&) const = default;
};

/// What an array [P] is made of, which says how it follows where a layer is rewritten.
enum class ArrayKind : std::uint8_t {
  parameters,  ///< of the function
  movement,    ///< a difference of parameters: momentum, a residual, a delta
  gradient,    ///< a mean of gradients
  square,      ///< a mean of their squares
};
/// An array that an optimizer remembers.
struct OptimizerArray {
  std::string name;
  ArrayKind kind = ArrayKind::movement;
  bool operator==(const OptimizerArray&) const = default;
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
  std::vector<OptimizerArray> optimizer_arrays = {{"momentum"}};
  NormalizedColumns normalized = {};
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
  [[nodiscard]] std::span<Column> columns() noexcept { return columns_; }
  [[nodiscard]] std::span<const Column> columns() const noexcept { return columns_; }
  /// All of them but the columns: parameters, what the optimizer remembers, buffers.
  [[nodiscard]] std::vector<GradientView> arrays() const;
  void zero_optimizer();
  /// Feeds arrays() into a hash, in that order, and the columns. Needs host-readable views from the device.
  Status hash_into(Hasher& hasher, Device& device) const;
  /// Copies all arrays and columns. Both must have equal layouts and host-readable memory.
  void copy_from(const ModelState& other);

 private:
  ModelState() = default;
  ModelLayout layout_;
  std::unique_ptr<Memory> parameters_;
  std::vector<std::unique_ptr<Memory>> optimizer_arrays_;
  std::unique_ptr<Memory> buffers_;
  std::vector<Column> columns_;  ///< [layout.normalized.size()]
};

}  // namespace rivulet::devices
