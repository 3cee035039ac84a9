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

/// What the group knows besides the trained numbers. In double, equal on all devices: agreed steps move it.
struct Statistics {
  std::vector<Column> columns;     ///< [ModelLayout::normalized.size()]
  std::vector<double> class_rows;  ///< [ModelLayout::counted_classes], rows of each label
  double averaged_rows = 0;  ///< behind the average of the parameters, at most ModelLayout::average_rows
  double usual_norm = 0;     ///< of gradients, running; of the steps of this state
  double hurried_rows = 0;   ///< a stream has changed: rows for which the windows stay shorter
  bool operator==(const Statistics&) const = default;
};

/// All are numbers that can be worked with: bytes from elsewhere may say anything.
bool is_sound(const Statistics& known);

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
  std::size_t counted_classes = 0;  ///< labels whose rows are counted, by agreed steps
  double average_rows = 0;          ///< rows of the group that the average of the parameters is of; 0: none
  [[nodiscard]] std::size_t contribution() const noexcept { return parameters + buffers; }  ///< P + B
};

/// The trained numbers, apart from the code that computes on them: flat arrays that a Device allocated.
/// parameters [P], what the optimizer remembers [P each], buffers [B]. A value: copies are deep (copy_from),
/// never implicit. Owner: the train thread; a snapshot is its own ModelState.
class ModelState {
 public:
  /// Zeroed. Errors: unavailable (memory).
  static Result<ModelState> create(const ModelLayout& layout, Device& device);
  /// Over arrays and statistics that are another state's, of which a layout with fewer buffers sees only the
  /// first. Lives no longer than that state.
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
  /// Of the parameters over the last agreements [P]; empty: there is none.
  [[nodiscard]] GradientView average() const {
    return average_ ? average_->view(layout_.scalar, layout_.parameters)
                    : GradientView{.scalar = layout_.scalar};
  }
  [[nodiscard]] Statistics& statistics() noexcept { return *statistics_; }
  [[nodiscard]] const Statistics& statistics() const noexcept { return *statistics_; }
  [[nodiscard]] std::span<Column> columns() noexcept { return statistics_->columns; }
  [[nodiscard]] std::span<const Column> columns() const noexcept { return statistics_->columns; }
  /// Those that are trained: parameters, what the optimizer remembers, buffers.
  [[nodiscard]] std::vector<GradientView> arrays() const;
  void zero_optimizer();
  /// Feeds arrays() into a hash, in that order, and the statistics; not the average, which follows from these
  /// and which another configuration may not have. Needs host-readable views
  /// from the device.
  Status hash_into(Hasher& hasher, Device& device) const;
  /// Copies all of it, the average if both have one. Both must have equal layouts but for that, and
  /// host-readable memory.
  void copy_from(const ModelState& other);

 private:
  ModelState() = default;
  friend ModelState averaged(const ModelState& state);
  ModelLayout layout_;
  std::unique_ptr<Memory> parameters_;
  std::vector<std::unique_ptr<Memory>> optimizer_arrays_;
  std::unique_ptr<Memory> buffers_;
  std::unique_ptr<Memory> average_;  ///< null: none
  std::unique_ptr<Statistics> own_statistics_;
  Statistics* statistics_ = nullptr;  ///< its own, or those of the state that it lies over
};

/// The layout of the model alone, without buffers that measure rows ("measured.*").
ModelLayout without_measured(ModelLayout layout);

/// The state as it is to be used, not trained: its parameters are their average, if there is one. Lives no
/// longer than `state`.
ModelState averaged(const ModelState& state);

}  // namespace rivulet::devices
