#include "devices/model_state.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "devices/host_memory.h"
#include "devices/model_support.h"

namespace rivulet::devices {

Result<ModelState> ModelState::create(const ModelLayout& layout, Device& device) {
  const std::size_t size = bytes_of(layout.scalar);
  ModelState state;
  state.layout_ = layout;
  auto parameters = device.allocate(layout.parameters * size);
  if (!parameters) return parameters.error();
  state.parameters_ = std::move(parameters).value();
  for (std::size_t i = 0; i < layout.optimizer_arrays.size(); ++i) {
    auto array = device.allocate(layout.parameters * size);
    if (!array) return array.error();
    state.optimizer_arrays_.push_back(std::move(array).value());
  }
  auto buffers = device.allocate(layout.buffers * size);
  if (!buffers) return buffers.error();
  state.buffers_ = std::move(buffers).value();
  if (layout.average_rows > 0) {
    auto average = device.allocate(layout.parameters * size);
    if (!average) return average.error();
    state.average_ = std::move(average).value();
  }
  state.own_statistics_ = std::make_unique<Statistics>();
  state.statistics_ = state.own_statistics_.get();
  state.statistics_->columns.resize(layout.normalized.size());
  state.statistics_->class_rows.resize(layout.counted_classes);
  return state;
}

namespace {

/// A view of a different state's array.
class Lent final : public Memory {
 public:
  explicit Lent(const GradientView& view) : view_(view) {}
  [[nodiscard]] std::size_t bytes() const noexcept override { return view_.bytes(); }
  [[nodiscard]] GradientView view(Scalar scalar, std::size_t count) const override {
    RIVULET_CHECK(scalar == view_.scalar && count <= view_.count, "more elements than the viewed array has");
    return view_.slice(0, count);
  }

 private:
  GradientView view_;
};

}  // namespace

ModelState ModelState::over(const ModelLayout& layout, const ModelState& whole) {
  RIVULET_CHECK(layout.optimizer_arrays == whole.layout_.optimizer_arrays,
                "the states have different optimizers");
  ModelState state;
  state.layout_ = layout;
  state.parameters_ = std::make_unique<Lent>(whole.parameters());
  for (std::size_t i = 0; i < layout.optimizer_arrays.size(); ++i)
    state.optimizer_arrays_.push_back(std::make_unique<Lent>(whole.optimizer_array(i)));
  state.buffers_ = std::make_unique<Lent>(whole.buffers());
  state.statistics_ = whole.statistics_;
  return state;
}

ModelState averaged(const ModelState& state) {
  ModelState out = ModelState::over(state.layout(), state);
  if (state.average_ && state.statistics().averaged_rows > 0)
    out.parameters_ = std::make_unique<Lent>(state.average());
  return out;
}

ModelLayout without_measured(ModelLayout layout) {
  layout.normalized = {};
  layout.counted_classes = 0;
  std::erase_if(layout.buffer_slots,
                [](const TensorSlot& slot) { return slot.name.starts_with("measured."); });
  layout.buffers = 0;
  for (const TensorSlot& slot : layout.buffer_slots) layout.buffers += slot.count;
  return layout;
}

bool is_sound(const Statistics& known) {
  const auto counts = [](double x) { return std::isfinite(x) && x >= 0; };
  const auto sound = [&](const Column& c) {
    return counts(c.rows) && counts(c.variance) && counts(c.shown_deviation) && std::isfinite(c.mean) &&
           std::isfinite(c.shown_mean);
  };
  return counts(known.averaged_rows) && counts(known.usual_norm) && counts(known.hurried_rows) &&
         std::ranges::all_of(known.columns, sound) && std::ranges::all_of(known.class_rows, counts);
}

std::vector<GradientView> ModelState::arrays() const {
  std::vector<GradientView> all{parameters()};
  for (std::size_t i = 0; i < optimizer_arrays_.size(); ++i) all.push_back(optimizer_array(i));
  all.push_back(buffers());
  return all;
}

void ModelState::zero_optimizer() {
  for (std::size_t i = 0; i < optimizer_arrays_.size(); ++i) fill_zero(optimizer_array(i));
}

Status ModelState::hash_into(Hasher& hasher, Device& device) const {
  for (const GradientView& own : arrays()) {
    auto host = device.to_host(own);
    if (!host) return host.error();
    hasher.add(host.value().host_bytes());
  }
  static_assert(sizeof(Column) == 5 * sizeof(double), "a column is hashed as it lies in memory");
  hasher.add(std::as_bytes(std::span(statistics_->columns)));
  hasher.add(std::as_bytes(std::span(statistics_->class_rows)));
  hasher.add_value(statistics_->usual_norm);
  hasher.add_value(statistics_->hurried_rows);
  return ok();
}

void ModelState::copy_from(const ModelState& other) {
  RIVULET_CHECK(layout_.scalar == other.layout_.scalar && layout_.parameters == other.layout_.parameters &&
                    layout_.buffers == other.layout_.buffers &&
                    layout_.optimizer_arrays == other.layout_.optimizer_arrays &&
                    layout_.normalized.size() == other.layout_.normalized.size() &&
                    layout_.counted_classes == other.layout_.counted_classes,
                "the states belong to different models or optimizers");
  const auto from = other.arrays();
  const auto to = arrays();
  for (std::size_t i = 0; i < to.size(); ++i) copy_host_numbers(from[i], to[i]);
  if (average_ && other.average_) copy_host_numbers(other.average(), average());
  *statistics_ = *other.statistics_;
}

}  // namespace rivulet::devices
