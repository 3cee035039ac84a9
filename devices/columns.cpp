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

/// What is shown follows once it is off by that part of a deviation. Each time costs a pass over the layers.
constexpr double slack = 1.0 / 32;
/// What is known counts as so few rows, once the stream has changed.
constexpr double rows_after_change = 100;
/// A column at rest that is known by fewer rows was not known.
constexpr double young_rows = 200;
/// Of began_wrong(), in deviations.
constexpr double collapse = 0.03;
constexpr double apart = 0.3;
/// Same: that rows of a switch are alike by chance happens less than once in N rounds.
constexpr double doubt = 8103;
constexpr double doubt_of_absurd = 7.4;
constexpr double absurd = 1000;  ///< beside other values
constexpr double absurd_itself = 1e6;
constexpr double few_wrong = 60;  ///< rows that were no readings; more are a state of what is measured
constexpr double residue = 1e-6;  ///< of numbers of 32 bits

/// After a change windows are shorter by this.
constexpr double hurry = 10;
/// Windows of a column that no layer follows: it moves slowly.
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
  RIVULET_CHECK(weight.count % bias.count == 0, "a linear layer has a weight and a bias");
  return {all + weight.begin, all + bias.begin, bias.count, weight.count / bias.count};
}

/// Of means of gradients the way is the other one: they are of the rewritten weights.
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
        case ArrayKind::movement:
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

/// Errors grow with the outputs, and what is behind them with the errors.
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
  std::optional<Layer<T>> skip;  // its bias is the last layer's
  if (const auto slot = skip_over_features(layout)) skip = layer_of(numbers, slots[*slot], slots.back());
  if (columns.features > 0 && columns.linear_first) {
    const auto first = layer_of(numbers, slots[0], slots[1]);
    RIVULET_CHECK(first.inputs == columns.features, "a first layer over the features");
    rescale_first(first, kind, by);
    if (skip) rescale_first(*skip, kind, by);
  }
  if (columns.targets > 0 && columns.linear_last) {
    const auto last = layer_of(numbers, slots[slots.size() - 2], slots.back());
    RIVULET_CHECK(last.outputs == columns.targets, "a last layer that gives the targets");
    rescale_last(last, kind, by);
    if (skip) rescale_weight(*skip, kind, by);
  }
}

/// Mean and variance of a round's rows, as they came.
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

/// Of a column with two values, that far from its mean, n rows are alike once in (1 + distance^2 /
/// variance)^n rounds. By multiplication: a logarithm may round otherwise on another machine. Ends early, as
/// the factor is above 1.
bool rarer_than(double once_in, double distance, double variance, double rows) {
  const double factor = 1 + distance * distance / variance;
  double rounds = 1;
  for (double row = 0; row < rows && rounds <= once_in; ++row) rounds *= factor;
  return rounds > once_in;
}

/// With a value that was not a reading: other rows lie close together, and away from the mean. So do rows of
/// a switch that is not touched, if they are few.
bool began_wrong(const Column& c, const Spread& round, double rows) {
  const double distance = round.mean - c.mean;
  if (c.rows <= 0 || c.rows >= young_rows || round.variance >= collapse * collapse * c.variance ||
      distance * distance <= apart * apart * c.variance)
    return false;
  const double values = std::abs(round.mean) + std::sqrt(round.variance);
  const double deviation = std::sqrt(c.variance);
  const bool told = values > residue * deviation;  // else the values are lost beside it
  const bool is_absurd = deviation > (told ? absurd * values : absurd_itself);
  // Of two values, so far from their mean: how many rows had the other one.
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
  RIVULET_CHECK(first != layout.buffer_slots.end(), "columns that are measured");
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
    // One row has no deviation: the column was not at rest, it was not known.
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

/// What was measured of a round's rows becomes part of what is known.
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
