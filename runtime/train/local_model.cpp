#include "runtime/train/local_model.h"

#include <algorithm>
#include <cmath>

#include "devices/numbers.h"
#include "runtime/state/round_update.h"

namespace rivulet::runtime {
namespace {

/// out = a - b.
void subtract(const GradientView& a, const GradientView& b, const GradientView& out) {
  const auto each = [](auto from, auto take, auto into) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = from[i] - take[i];
  };
  if (out.scalar == Scalar::f32)
    each(a.as<float>(), b.as<float>(), out.as<float>());
  else
    each(a.as<double>(), b.as<double>(), out.as<double>());
}

/// to += there - from.
void advance(const GradientView& to, const GradientView& from, const GradientView& there) {
  const auto each = [](auto number, auto less, auto more) {
    for (std::size_t i = 0; i < number.size(); ++i) number[i] += more[i] - less[i];
  };
  if (to.scalar == Scalar::f32)
    each(to.as<float>(), from.as<float>(), there.as<float>());
  else
    each(to.as<double>(), from.as<double>(), there.as<double>());
}

/// to = 0 where `at` is not 0.
void clear_where(const GradientView& at, const GradientView& to) {
  const auto each = [](auto mark, auto number) {
    for (std::size_t i = 0; i < number.size(); ++i) number[i] = mark[i] != 0 ? 0 : number[i];
  };
  if (to.scalar == Scalar::f32)
    each(at.as<float>(), to.as<float>());
  else
    each(at.as<double>(), to.as<double>());
}

bool is_zero(const devices::ModelState& state) {
  const std::size_t arrays = state.layout().optimizer_arrays.size();
  for (std::size_t i = 0; i < arrays; ++i)
    if (std::ranges::any_of(state.optimizer_array(i).host_bytes(),
                            [](std::byte b) { return b != std::byte{0}; }))
      return false;
  return true;
}

}  // namespace

Result<std::unique_ptr<LocalModel>> LocalModel::create(const Parts& parts) {
  const auto& layout = parts.trainer.layout();
  auto memory = parts.device.allocate(layout.contribution() * bytes_of(layout.scalar));
  if (!memory) return memory.error();
  std::unique_ptr<LocalModel> model(new LocalModel(parts));
  model->memory_ = std::move(memory).value();
  model->gradient_ = model->memory_->view(layout.scalar, layout.contribution());
  return model;
}

Status LocalModel::compute(const BatchView& batch, std::size_t counted, const AgreedState& state) {
  if (computed_ && batch.rows > 0) return ok();
  report_ = {};
  finite_ = true;
  compute_seconds_ = 0;
  if (batch.rows == 0) return ok();
  const TimePoint before = parts_.clock.now();
  auto report = parts_.trainer.compute_gradients(private_ ? *private_ : state.model, batch, gradient_);
  if (!report) return report.error();
  parts_.device.charge({batch.rows});
  compute_seconds_ = to_seconds(parts_.clock.now() - before);
  report_ = report.value();
  computed_rows_ = batch.rows;
  if (counted < batch.rows) count_part(static_cast<double>(counted) / static_cast<double>(batch.rows));
  report_.rows = counted;
  const auto fits = gradient_fits();
  if (!fits) return fits.error();
  finite_ = report_.finite && fits.value();
  computed_ = true;
  return ok();
}

/// The trainer checks what it computes; this checks the buffers appended to it.
Result<bool> LocalModel::gradient_fits() {
  const auto& layout = parts_.trainer.layout();
  if (!(report_.gradient_norm2 <= sum_part_max * sum_part_max)) return false;
  if (layout.buffers == 0) return true;
  auto buffers = parts_.device.to_host(gradient_.slice(layout.parameters, layout.buffers));
  if (!buffers) return buffers.error();
  return fits_in_average(buffers.value());
}

/// Hits are integers: carries the fraction over to the next batch, so that the total is correct.
void LocalModel::count_part(double part) {
  report_.loss_sum *= part;
  hits_owed_ += static_cast<double>(report_.correct) * part;
  report_.correct = static_cast<std::uint64_t>(hits_owed_);
  hits_owed_ -= static_cast<double>(report_.correct);
}

Status LocalModel::prepare_gradient() {
  auto host = parts_.device.to_host(gradient_);
  if (!host) return host.error();
  mine_ = host.value();
  delta_ready_ = false;
  return ok();
}

void LocalModel::sketch_gradient(const devices::ModelLayout& layout) {
  if (!sketching_) return;
  const GradientView gradient = mine_.slice(0, layout.parameters);
  sketches_.stepped(gradient, computed_rows_);
  sketches_.add_delta(gradient, 1);
}

Status LocalModel::make_private(const AgreedState& state) {
  if (private_) return ok();
  devices::ModelLayout layout = state.model.layout();
  layout.average_rows = 0;  // only the reference has an average
  auto copy = devices::ModelState::create(layout, parts_.device);
  if (!copy) return copy.error();
  private_.emplace(std::move(copy).value());
  private_->copy_from(state.model);
  // An optimizer with bias correction continues the step count of its memory.
  const bool remembers = parts_.optimizer.entry != nullptr && !is_zero(*private_);
  private_steps_ = remembers ? state.stamp.step : 0;
  parts_.intervals.current.start = point();
  return ok();
}

Status LocalModel::step(const AgreedState& state, std::size_t rows, double learning_rate_factor) {
  if (rows == 0 || !finite_) return ok();
  if (auto made = make_private(state); !made) return made;
  auto host = parts_.device.to_host(gradient_);
  if (!host) return host.error();
  auto applied = devices::apply_gradient(parts_.optimizer, *private_, host.value(), learning_rate_factor,
                                         ++private_steps_, parts_.device);
  if (!applied) return applied.error();
  applied_ = applied.value();
  delta_ready_ = false;
  if (sketching_) sketches_.stepped(host.value().slice(0, state.model.layout().parameters), computed_rows_);
  return ok();
}

Status LocalModel::prepare_delta(const AgreedState& state) {
  const auto& layout = state.model.layout();
  if (!delta_memory_) {
    auto memory = parts_.device.allocate_shared(layout.contribution() * bytes_of(layout.scalar));
    if (!memory) return memory.error();
    delta_memory_ = std::move(memory).value();
  }
  const auto& to = private_ ? *private_ : state.model;
  mine_ = delta_memory_->view(layout.scalar, layout.contribution());
  subtract(state.model.parameters(), to.parameters(), mine_.slice(0, layout.parameters));
  std::ranges::copy(to.buffers().host_bytes(),
                    mine_.slice(layout.parameters, layout.buffers).host_bytes().begin());
  delta_norm_ = std::sqrt(devices::norm2(mine_.slice(0, layout.parameters)));
  delta_fits_ =
      delta_norm_ <= sum_part_max && fits_in_average(mine_.slice(layout.parameters, layout.buffers));
  if (sketching_) sketches_.add_delta(mine_.slice(0, layout.parameters), own().steps());
  parts_.intervals.current.contributed = delta_ready_ = true;
  return ok();
}

void LocalModel::depart() {
  ModelPoint here = point();
  const auto parameters = private_->parameters().host_bytes();
  here.parameters.assign(parameters.begin(), parameters.end());
  const auto buffers = private_->buffers().host_bytes();
  here.buffers.assign(buffers.begin(), buffers.end());
  parts_.intervals.depart(std::move(here), parts_.clock.now());
  delta_ready_ = false;
  sketches_.begin();
}

/// Converts the point to the normalization `known`.
void LocalModel::bring_to(const devices::Statistics& known, ModelPoint& point) const {
  const auto& layout = private_->layout();
  const auto by = devices::rescaling_between(point.known.columns, known.columns, layout.normalized);
  const auto rescale = [&](std::vector<std::byte>& numbers, devices::ArrayKind kind) {
    if (by.moves && !numbers.empty())
      devices::rescale({.data = numbers.data(), .count = layout.parameters, .scalar = layout.scalar}, kind,
                       by, layout);
  };
  for (std::size_t i = 0; i < point.arrays.size(); ++i)
    rescale(point.arrays[i], layout.optimizer_arrays[i].kind);
  rescale(point.parameters, devices::ArrayKind::parameters);
  point.known.columns = known.columns;
}

/// Switches the copy and its optimizer to the normalization `known`. The model still computes the same
/// function.
void LocalModel::see(const devices::Statistics& known) {
  const auto& layout = private_->layout();
  devices::Statistics& own = private_->statistics();
  const auto by = devices::rescaling_between(own.columns, known.columns, layout.normalized);
  devices::rescale(private_->parameters(), devices::ArrayKind::parameters, by, layout);
  for (std::size_t i = 0; i < layout.optimizer_arrays.size(); ++i)
    devices::rescale(private_->optimizer_array(i), layout.optimizer_arrays[i].kind, by, layout);
  own.columns = known.columns;
  own.class_rows = known.class_rows;
}

/// Resets the copy to the reference.
void LocalModel::start_from(const AgreedState& state) {
  see(state.model.statistics());
  std::ranges::copy(state.model.parameters().host_bytes(), private_->parameters().host_bytes().begin());
  std::ranges::copy(state.model.buffers().host_bytes(), private_->buffers().host_bytes().begin());
  delta_ready_ = false;
  delta_fits_ = true;
  sketches_.begin();
  parts_.intervals.restart(parts_.clock.now());
}

/// Applies the reference's change to the copy, which keeps the steps since it departed. Sets the group's
/// buffers.
void LocalModel::move_along(const AgreedState& state) {
  ModelPoint& start = parts_.intervals.current.start;
  bring_to(state.model.statistics(), start);
  if (own().steps() == 0) {
    start_from(state);
  } else {
    see(state.model.statistics());
    const auto here = private_->parameters();
    advance(here, {start.parameters.data(), here.count, here.scalar}, state.model.parameters());
    std::ranges::copy(state.model.buffers().host_bytes(), private_->buffers().host_bytes().begin());
  }
  start.parameters = start.buffers = {};
  parts_.intervals.commit();
}

/// Excludes parameters and buffers.
ModelPoint LocalModel::point() const {
  ModelPoint here{.arrays = {}, .steps = private_steps_, .known = private_->statistics()};
  for (std::size_t i = 0; i < private_->layout().optimizer_arrays.size(); ++i) {
    const auto bytes = private_->optimizer_array(i).host_bytes();
    here.arrays.emplace_back(bytes.begin(), bytes.end());
  }
  return here;
}

/// Restores the optimizer at `from`, converted to the copy's normalization.
void LocalModel::recall(const ModelPoint& from) {
  const auto& layout = private_->layout();
  const auto by = devices::rescaling_between(from.known.columns, private_->columns(), layout.normalized);
  for (std::size_t i = 0; i < from.arrays.size(); ++i) {
    std::ranges::copy(from.arrays[i], private_->optimizer_array(i).host_bytes().begin());
    devices::rescale(private_->optimizer_array(i), layout.optimizer_arrays[i].kind, by, layout);
  }
  private_steps_ = from.steps;
  private_->statistics().usual_norm = from.known.usual_norm;
}

bool LocalModel::agreed(const AgreedState& state, bool applied, const GradientView& left) {
  if (!private_) {
    parts_.intervals.restart(parts_.clock.now());
    return true;
  }
  // Non-finite values are never sent, compressed or not: keeps them out of the momentum.
  if (!applied || !delta_fits_) {
    const bool undone = departed() && own().steps() > 0;
    roll_back(state);
    return !undone;
  }
  const std::size_t arrays = left.count > 0 ? private_->layout().optimizer_arrays.size() : 0;
  for (std::size_t i = 0; i < arrays; ++i) clear_where(left, private_->optimizer_array(i));
  if (departed()) {
    move_along(state);
  } else {
    start_from(state);
    parts_.intervals.current.start = point();
  }
  return true;
}

void LocalModel::roll_back(const AgreedState& state) {
  if (private_) {
    recall(last_synchronized());
    start_from(state);
  }
  parts_.intervals.roll_back(parts_.clock.now());
}

void LocalModel::return_to(const ModelPoint& departure) {
  private_->statistics() = departure.known;
  std::ranges::copy(departure.buffers, private_->buffers().host_bytes().begin());
  std::ranges::copy(departure.parameters, private_->parameters().host_bytes().begin());
  recall(departure);
  parts_.intervals.current.start = departure;
}

void LocalModel::resume(const AgreedState& state) {
  move_along(state);
}

void LocalModel::adopt(const AgreedState& state, const Stamp& before, std::uint64_t rows_before,
                       const GradientView& left) {
  const bool is_next = state.stamp == Stamp{before.lineage, before.step + 1};
  if (!private_ || !is_next) return forget();
  if (state.rows == rows_before) return roll_back(state);  // only offsets have moved
  if (parts_.intervals.oldest().contributed) {
    agreed(state, true, left);
    return;
  }
  forget();
}

void LocalModel::forget() noexcept {
  forget_own();
  sketches_.clear();
}

void LocalModel::forget_own() noexcept {
  private_.reset();
  private_steps_ = 0;
  delta_ready_ = false;
  parts_.intervals.roll_back(parts_.clock.now());
  parts_.intervals.current.start = {};
}

std::vector<std::span<const std::byte>> LocalModel::kept() const {
  const auto& arrays = last_synchronized().arrays;
  return {arrays.begin(), arrays.end()};
}

std::uint64_t LocalModel::kept_digest() const {
  if (!private_) return 0;
  Hasher hasher;
  const ModelPoint& kept = last_synchronized();
  hasher.add_value(kept.steps);
  hasher.add_value(kept.known.usual_norm);
  for (const auto& array : kept.arrays) hasher.add(array);
  return hasher.finish().low;
}

Status LocalModel::begin_with(const PrivatePart& part, const AgreedState& state) {
  const auto& layout = state.model.layout();
  if (part.local_arrays.size() != layout.optimizer_arrays.size() || part.local_steps == 0) return ok();
  if (auto made = make_private(state); !made) return made;
  ModelPoint& start = parts_.intervals.current.start;
  start = {part.local_arrays, part.local_steps, state.model.statistics()};
  start.known.usual_norm = part.local_norm;
  roll_back(state);
  return ok();
}

}  // namespace rivulet::runtime
