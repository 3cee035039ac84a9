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

/// Columns of a row that are normalized for the model (devices/columns.h): features, then targets.
struct NormalizedColumns {
  std::size_t features = 0;  ///< 0: not normalized
  std::size_t targets = 0;   ///< same
  double window = 10'000;    ///< rows of the group in mean and deviation
  double limit = 8;          ///< standard deviations beyond which a value is clipped
  /// The first two parameter tensors are a linear layer over the features: weight [n, features], bias [n].
  bool linear_first = false;
  /// The last two tensors are a linear layer that produces the outputs: weight [targets, n], bias [targets].
  bool linear_last = false;
  [[nodiscard]] std::size_t size() const noexcept { return features + targets; }
};

/// Agreed statistics of a column of rows. In double, equal on all devices: only agreed steps change them.
struct Column {
  double rows = 0;  ///< rows in mean and variance, at most the window; 0: unknown column
  double mean = 0;
  double variance = 0;
  /// The model sees (x - shown_mean) / shown_deviation. These follow mean and variance in steps.
  double shown_mean = 0;
  double shown_deviation = 0;  ///< 0: the column is at rest, and the model sees 0
  bool operator==(const Column&) const = default;
};

/// Agreed statistics, stored alongside the trained values. In double, equal on all devices: only agreed steps
/// change them.
struct Statistics {
  std::vector<Column> columns;     ///< [ModelLayout::normalized.size()]
  std::vector<double> class_rows;  ///< [ModelLayout::counted_classes], rows of each label
  double averaged_rows = 0;  ///< rows in the average of the parameters, at most ModelLayout::average_rows
  double usual_norm = 0;     ///< running norm of the gradients of this state's steps
  double hurried_rows = 0;   ///< rows for which windows stay shorter after a change of the stream
  bool operator==(const Statistics&) const = default;
};

/// Whether all values are finite and in range. For statistics from outside this process.
bool is_sound(const Statistics& known);

/// Kind of an array [P]: determines how the array changes when a layer is rewritten.
enum class ArrayKind : std::uint8_t {
  parameters,  ///< parameters of the model
  delta,       ///< a difference of parameters: momentum, a residual, a delta
  gradient,    ///< a mean of gradients
  square,      ///< a mean of their squares
};
/// An array of optimizer state.
struct OptimizerArray {
  std::string name;
  ArrayKind kind = ArrayKind::delta;
  bool operator==(const OptimizerArray&) const = default;
};

/// Layout of a model's arrays. Pure data; equal for all devices of a job.
struct ModelLayout {
  Scalar scalar = Scalar::f32;
  std::size_t parameters = 0;  ///< P
  std::size_t buffers = 0;     ///< B, e.g. batch-norm running statistics
  std::vector<TensorSlot> parameter_slots;
  std::vector<TensorSlot> buffer_slots;
  /// Batch norm's counts of batches: integers, never averaged, all equal to the number of steps.
  std::vector<std::string> batch_counts = {};
  /// Optimizer arrays of P elements each, under the optimizer's names.
  std::vector<OptimizerArray> optimizer_arrays = {{"momentum"}};
  NormalizedColumns normalized = {};
  std::size_t counted_classes = 0;  ///< number of labels whose rows are counted in agreed steps
  double average_rows = 0;          ///< rows of the group in the average of the parameters; 0: no average
  [[nodiscard]] std::size_t contribution() const noexcept { return parameters + buffers; }  ///< P + B
};

/// The trained values, separate from the code that computes on them: parameters [P], optimizer arrays [P
/// each], buffers [B]. Flat arrays allocated by a Device. A value: copies are deep (copy_from), never
/// implicit. Owner: the train thread; a snapshot is its own ModelState.
class ModelState {
 public:
  /// Makes a zeroed state. Errors: unavailable (out of memory).
  static Result<ModelState> create(const ModelLayout& layout, Device& device);
  /// Returns a view of another state's arrays and statistics. A layout with fewer buffers sees only the first
  /// ones. `whole` must outlive the view.
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
  /// Average of the parameters over the last synchronizations [P]; empty if the layout has none.
  [[nodiscard]] GradientView average() const {
    return average_ ? average_->view(layout_.scalar, layout_.parameters)
                    : GradientView{.scalar = layout_.scalar};
  }
  [[nodiscard]] Statistics& statistics() noexcept { return *statistics_; }
  [[nodiscard]] const Statistics& statistics() const noexcept { return *statistics_; }
  [[nodiscard]] std::span<Column> columns() noexcept { return statistics_->columns; }
  [[nodiscard]] std::span<const Column> columns() const noexcept { return statistics_->columns; }
  /// The trained arrays: parameters, optimizer arrays, buffers.
  [[nodiscard]] std::vector<GradientView> arrays() const;
  void zero_optimizer();
  /// Hashes arrays(), in that order, and the statistics. Excludes the average, which follows from them and
  /// may be absent in other configurations. Needs host-readable views from the device.
  Status hash_into(Hasher& hasher, Device& device) const;
  /// Copies the whole state, and the average if both states have one. Layouts must otherwise be equal, and
  /// memory host-readable.
  void copy_from(const ModelState& other);

 private:
  ModelState() = default;
  friend ModelState averaged(const ModelState& state);
  ModelLayout layout_;
  std::unique_ptr<Memory> parameters_;
  std::vector<std::unique_ptr<Memory>> optimizer_arrays_;
  std::unique_ptr<Memory> buffers_;
  std::unique_ptr<Memory> average_;  ///< null if the layout has no average
  std::unique_ptr<Statistics> own_statistics_;
  Statistics* statistics_ = nullptr;  ///< own, or those of the state under this view
};

/// Returns the layout of the model alone, without buffers for measurements of rows ("measured.*").
ModelLayout without_measured(ModelLayout layout);

/// Returns a view of the state for use, not training, with the average as its parameters if there is one.
/// `state` must outlive the view.
ModelState averaged(const ModelState& state);

}  // namespace rivulet::devices
