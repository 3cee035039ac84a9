#include "devices/columns.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/check.h"
#include "devices/host_memory.h"
#include "devices/inner_state.h"
#include "devices/outliers.h"
#include "devices/spread.h"

namespace rivulet::devices {
namespace {

/// Error of the shown values, in standard deviations, above which they are updated. Each update costs a pass
/// over the layers.
constexpr double slack = 1.0 / 32;
/// Number of rows that a column's statistics stand for after a change of the stream.
constexpr double rows_after_change = 100;
/// A column at rest with fewer rows counts as unknown.
constexpr double young_rows = 200;
/// Thresholds of began_wrong(), in standard deviations.
constexpr double collapse = 0.03;
constexpr double apart = 0.3;
/// Thresholds of began_wrong(): rows of a switch are equal by chance less than once in this many rounds.
constexpr double doubt = 8103;
constexpr double doubt_of_absurd = 7.4;
constexpr double absurd = 1000;  ///< relative to other values
constexpr double absurd_itself = 1e6;
constexpr double few_wrong = 60;  ///< rows of a false reading; more are a real state
constexpr double residue = 1e-6;  ///< relative rounding error of float32

/// Divisor of windows after a change of the stream.
constexpr double hurry = 10;
/// Factor on the window of a column that no layer follows: it must change slowly.
constexpr double slow_window = 10;

constexpr std::array names{"measured.rows", "measured.mean", "measured.square", "measured.beyond"};

bool is_measured(const TensorSlot& slot) {
  return std::ranges::count(names, slot.name) > 0;
}

/// A linear layer of a model: weight [outputs, inputs], bias [outputs].
template <class T>
struct Layer {
  T* weight;
  T* bias;
  std::size_t outputs, inputs;
};

template <class T>
Layer<T> layer_of(T* all, const TensorSlot& weight, const TensorSlot& bias) {
  RIVULET_CHECK(weight.count % bias.count == 0, "the weight of a linear layer does not match its bias");
  return {all + weight.begin, all + bias.begin, bias.count, weight.count / bias.count};
}

/// Means of gradients transform inversely, to gradients of the rewritten weights.
template <class T>
void rescale_first(const Layer<T>& layer, ArrayKind kind, const Rescaling& by) {
  for (std::size_t o = 0; o < layer.outputs; ++o) {
    T* row = layer.weight + o * layer.inputs;
    const double bias = layer.bias[o];
    double moved = 0;
    for (std::size_t i = 0; i < layer.inputs; ++i) {
      const double w = row[i];
      const double ratio = by.ratio[i];
      switch (kind) {
        case ArrayKind::parameters:
        case ArrayKind::delta:
          row[i] = static_cast<T>(w * ratio);
          moved += w * by.shift[i];
          break;
        case ArrayKind::gradient:
          row[i] = static_cast<T>(ratio > 0 ? (w - bias * by.shift[i]) / ratio : 0);
          break;
        case ArrayKind::square:
          row[i] = static_cast<T>(
              by.woken[i] || !(ratio > 0) ? bias : (w + bias * by.shift[i] * by.shift[i]) / (ratio * ratio));
          break;
      }
    }
    if (moved != 0) layer.bias[o] = static_cast<T>(bias + moved);
  }
}

/// Output errors, hence gradients, scale with the outputs; mean squares with their square.
double factor_of(double gain, ArrayKind kind) {
  return kind == ArrayKind::square ? gain * gain : gain;
}

template <class T>
void rescale_weight(const Layer<T>& layer, ArrayKind kind, const Rescaling& by) {
  for (std::size_t o = 0; o < layer.outputs; ++o) {
    const double factor = factor_of(by.gain[o], kind);
    T* row = layer.weight + o * layer.inputs;
    for (std::size_t i = 0; i < layer.inputs; ++i) row[i] = static_cast<T>(row[i] * factor);
  }
}

template <class T>
void rescale_last(const Layer<T>& layer, ArrayKind kind, const Rescaling& by) {
  rescale_weight(layer, kind, by);
  for (std::size_t o = 0; o < layer.outputs; ++o) {
    const double factor = factor_of(by.gain[o], kind);
    const double offset = kind == ArrayKind::parameters ? by.offset[o] : 0;
    layer.bias[o] = static_cast<T>(layer.bias[o] * factor + offset);
  }
}

template <class T>
void rescale_all(T* numbers, ArrayKind kind, const Rescaling& by, const ModelLayout& layout) {
  const NormalizedColumns& columns = layout.normalized;
  const auto& slots = layout.parameter_slots;
  std::optional<Layer<T>> skip;  // shares the last layer's bias
  if (const auto slot = skip_over_features(layout)) skip = layer_of(numbers, slots[*slot], slots.back());
  if (columns.features > 0 && columns.linear_first) {
    const auto first = layer_of(numbers, slots[0], slots[1]);
    RIVULET_CHECK(first.inputs == columns.features, "the first layer does not take the features");
    rescale_first(first, kind, by);
    if (skip) rescale_first(*skip, kind, by);
  }
  if (columns.targets > 0 && columns.linear_last) {
    const auto last = layer_of(numbers, slots[slots.size() - 2], slots.back());
    RIVULET_CHECK(last.outputs == columns.targets, "the last layer does not output the targets");
    rescale_last(last, kind, by);
    if (skip) rescale_weight(*skip, kind, by);
  }
}

/// Mean and variance of a round's rows, in raw units.
struct Spread {
  double mean, variance;
};

Spread spread_of(const Column& c, double mean, double square) {
  const double unit = c.shown_deviation > 0 ? c.shown_deviation : 1;
  return {c.shown_mean + unit * mean, unit * unit * std::max(0.0, square - mean * mean)};
}

void show(Column& c, bool in_steps) {
  const double deviation = deviation_of(c.mean, c.variance);
  const double off = slack * c.shown_deviation;
  const bool same_kind = (deviation > 0) == (c.shown_deviation > 0);
  if (in_steps && same_kind && std::abs(c.mean - c.shown_mean) <= off &&
      std::abs(deviation - c.shown_deviation) <= off)
    return;
  c.shown_mean = c.mean;
  c.shown_deviation = deviation;
}

/// In a column of two values, n rows at this distance from the mean are equal once in (1 + distance^2 /
/// variance)^n rounds. Multiplies, since logarithms may round differently on other machines. Ends early,
/// since the factor exceeds 1.
bool rarer_than(double once_in, double distance, double variance, double rows) {
  const double factor = 1 + distance * distance / variance;
  double rounds = 1;
  for (double row = 0; row < rows && rounds <= once_in; ++row) rounds *= factor;
  return rounds > once_in;
}

/// Whether the column began with a false reading: the round's rows lie close together and far from the mean.
/// A switch that has been idle for a few rows looks the same.
bool began_wrong(const Column& c, const Spread& round, double rows) {
  const double distance = round.mean - c.mean;
  if (c.rows <= 0 || c.rows >= young_rows || round.variance >= collapse * collapse * c.variance ||
      distance * distance <= apart * apart * c.variance)
    return false;
  const double values = std::abs(round.mean) + std::sqrt(round.variance);
  const double deviation = std::sqrt(c.variance);
  const bool told = values > residue * deviation;  // else rounding hides the values
  const bool is_absurd = deviation > (told ? absurd * values : absurd_itself);
  // For two values at this distance from their mean: the number of rows with the other value.
  const double odds = distance * distance / c.variance;
  if (!is_absurd && c.rows * odds / (1 + odds) > few_wrong) return false;
  return rarer_than(is_absurd ? doubt_of_absurd : doubt, distance, c.variance, rows);
}

void follow(Column& c, const Spread& round, double rows, double beyond, double window) {
  const bool rests = c.rows > 0 && c.shown_deviation == 0;
  if (rests && beyond > wake_share) c.rows = std::min(c.rows, young_rows);
  if (!rests && has_changed(beyond)) c.rows = std::min(c.rows, rows_after_change);
  if (began_wrong(c, round, rows)) c.rows = 0;
  const double weight = rows / (std::min(c.rows, window) + rows);
  merge_spread(c.mean, c.variance, round.mean, round.variance, weight);
  c.rows = std::min(c.rows + rows, window);
}

}  // namespace

void Measured::read(const GradientView& from, std::size_t columns) {
  const auto take = [&](auto numbers) {
    const auto part = [&](std::size_t i) { return numbers.subspan(1 + i * columns, columns); };
    rows = static_cast<double>(numbers[0]);
    mean.assign(part(0).begin(), part(0).end());
    square.assign(part(1).begin(), part(1).end());
    beyond.assign(part(2).begin(), part(2).end());
  };
  from.scalar == Scalar::f32 ? take(from.as<float>()) : take(from.as<double>());
}

void Measured::write(const GradientView& to) const {
  const auto put = [&](auto numbers) {
    using T = typename decltype(numbers)::value_type;
    const std::size_t columns = mean.size();
    numbers[0] = static_cast<T>(rows);
    for (std::size_t i = 0; i < columns; ++i) {
      numbers[1 + i] = static_cast<T>(mean[i]);
      numbers[1 + columns + i] = static_cast<T>(square[i]);
      numbers[1 + 2 * columns + i] = static_cast<T>(beyond[i]);
    }
  };
  to.scalar == Scalar::f32 ? put(to.as<float>()) : put(to.as<double>());
}

FirstRows Measured::first_rows(std::size_t column) const {
  const double share = beyond[column];
  if (!(share > 0)) return {};
  return {share * rows, mean[column] / share, std::max(0.0, square[column]) / share};
}

void Measured::set_first_rows(std::size_t column, const FirstRows& values, double all_rows) {
  const double share = values.count / all_rows;
  beyond[column] = share;
  mean[column] = share * values.mean;
  square[column] = share * values.variance;
}

bool is_known(std::span<const Column> columns) {
  return std::ranges::any_of(columns, [](const Column& c) { return c.rows > 0; });
}

ModelLayout with_columns(ModelLayout model, const NormalizedColumns& columns) {
  model.normalized = columns;
  for (const char* name : names) append_buffers(model, name, name == names.front() ? 1 : columns.size());
  return model;
}

GradientView measured_in(const GradientView& numbers, const ModelLayout& layout) {
  const auto first = std::ranges::find_if(layout.buffer_slots, is_measured);
  RIVULET_CHECK(first != layout.buffer_slots.end(), "the model measures no columns");
  return numbers.slice(numbers.count - layout.buffers + first->begin,
                       Measured::numbers(layout.normalized.size()));
}

double deviation_of(double mean, double variance) {
  const double deviation = std::sqrt(variance);
  const bool varies = deviation > least_relative_deviation * std::abs(mean) && deviation > least_deviation;
  return varies ? deviation : 0;
}

Rescaling rescaling_between(std::span<const Column> before, std::span<const Column> after,
                            const NormalizedColumns& columns) {
  Rescaling by{std::vector<double>(columns.features, 1), std::vector<double>(columns.features, 0),
               std::vector<bool>(columns.features, false), std::vector<double>(columns.targets, 1),
               std::vector<double>(columns.targets, 0)};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Column& was = before[i];
    const Column& is = after[i];
    const bool followed = i < columns.features ? columns.linear_first : columns.linear_last;
    if (!followed || was.rows == 0 ||
        (was.shown_mean == is.shown_mean && was.shown_deviation == is.shown_deviation))
      continue;
    const double moved = is.shown_mean - was.shown_mean;
    // After a single row the deviation is 0 because nothing is known yet, not because the column is at rest.
    if (was.shown_deviation == 0 && was.rows < young_rows) continue;
    by.moves = true;
    if (i >= columns.features) {
      // Predictions are shown_mean + shown_deviation * output.
      if (is.shown_deviation == 0) continue;
      by.gain[i - columns.features] = was.shown_deviation / is.shown_deviation;
      by.offset[i - columns.features] = -moved / is.shown_deviation;
    } else if (was.shown_deviation == 0) {
      by.ratio[i] = 0;
      by.woken[i] = true;
    } else if (std::abs(moved) <= columns.limit * was.shown_deviation &&
               is.shown_deviation <= columns.limit * was.shown_deviation &&
               (is.shown_deviation == 0 || was.shown_deviation <= columns.limit * is.shown_deviation)) {
      by.ratio[i] = is.shown_deviation / was.shown_deviation;
      by.shift[i] = moved / was.shown_deviation;
    }
  }
  return by;
}

std::optional<std::size_t> skip_over_features(const ModelLayout& layout) {
  if (!layout.normalized.linear_first || !layout.normalized.linear_last) return {};
  const auto skip = std::ranges::find(layout.parameter_slots, "skip.weight", &TensorSlot::name);
  if (skip == layout.parameter_slots.end()) return {};
  return static_cast<std::size_t>(skip - layout.parameter_slots.begin());
}

void rescale(const GradientView& numbers, ArrayKind kind, const Rescaling& by, const ModelLayout& layout) {
  if (!by.moves) return;
  if (numbers.scalar == Scalar::f32)
    rescale_all(numbers.as<float>().data(), kind, by, layout);
  else
    rescale_all(numbers.as<double>().data(), kind, by, layout);
}

void hurry_after_change(ModelState& state) {
  Statistics& known = state.statistics();
  known.hurried_rows = state.layout().normalized.window;
  known.averaged_rows = 0;
}

namespace {

/// Folds the measurements of a round's rows into the columns.
void learn(ModelState& state, double rows, Measured& measured) {
  const NormalizedColumns& columns = state.layout().normalized;
  double& hurried = state.statistics().hurried_rows;
  const double window = columns.window / (hurried > 0 ? hurry : 1);
  hurried = std::max(0.0, hurried - rows);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    Column& c = state.columns()[i];
    const bool rewritten = i < columns.features ? columns.linear_first : columns.linear_last;
    const double own_window = rewritten ? window : slow_window * window;
    const bool rested = c.shown_deviation == 0;
    if (c.rows > 0) {
      follow(c, spread_of(c, measured.mean[i], measured.square[i]), rows, measured.beyond[i], own_window);
    } else if (const FirstRows first = measured.first_rows(i); first.count > 0) {
      follow(c, {first.mean, first.variance}, rows * first.count / measured.rows, 0, own_window);
      measured.beyond[i] = 0;
    }
    show(c, rewritten);
    if (rested && c.shown_deviation > 0) measured.beyond[i] = 0;
  }
}

Status rewrite(ModelState& state, const Rescaling& by, Device& device) {
  const ModelLayout& layout = state.layout();
  const auto follow = [&](const GradientView& own, ArrayKind kind) {
    return change_on_host(device, own,
                          [&](const GradientView& numbers) { rescale(numbers, kind, by, layout); });
  };
  if (auto done = follow(state.parameters(), ArrayKind::parameters); !done) return done;
  if (layout.average_rows > 0)
    if (auto done = follow(state.average(), ArrayKind::parameters); !done) return done;
  for (std::size_t i = 0; i < layout.optimizer_arrays.size(); ++i)
    if (auto done = follow(state.optimizer_array(i), layout.optimizer_arrays[i].kind); !done) return done;
  return ok();
}

}  // namespace

Status follow_columns(ModelState& state, double rows, Device& device) {
  const NormalizedColumns& columns = state.layout().normalized;
  if (columns.size() == 0) return ok();
  const std::vector<Column> before(state.columns().begin(), state.columns().end());
  auto folded =
      change_on_host(device, measured_in(state.buffers(), state.layout()), [&](const GradientView& place) {
        Measured measured;
        measured.read(place, columns.size());
        if (rows > 0 && measured.rows > 0) learn(state, rows, measured);
        measured.rows = 0;
        std::ranges::fill(measured.mean, 0);
        std::ranges::fill(measured.square, 0);
        measured.write(place);
      });
  const Rescaling by = rescaling_between(before, state.columns(), columns);
  return !folded || !by.moves ? folded : rewrite(state, by, device);
}

}  // namespace rivulet::devices
