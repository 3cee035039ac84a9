#include "devices/normalizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "core/check.h"
#include "core/vector_code.h"
#include "devices/first_rows.h"
#include "devices/inner_state.h"
#include "devices/outliers.h"

namespace rivulet::devices {
namespace {

// Minimum counts among the recent rows, so that the first few rows of a stream trigger nothing.
constexpr double fewest_of_change = 3;
constexpr double fewest_to_wake = 1.5;

/// Columns [begin, begin + count), with values [rows, count] in a batch.
struct Block {
  std::size_t begin, count;
  bool of_targets;
};

/// The model sees (x - mean) * factor, clipped to +-`limit`; 0 if the factor is 0.
struct Scaling {
  std::vector<double> mean, factor;
  double limit = 0;
  void resize(std::size_t n) {
    mean.resize(n);
    factor.resize(n);
  }
  void set(std::size_t i, double center, double deviation) {
    mean[i] = center;
    factor[i] = deviation > 0 ? 1 / deviation : 0;
  }
};

/// Sums over the rows of a batch, column by column.
struct Sums {
  std::vector<double> first, square;
  std::vector<double> beyond;  ///< rows
  void clear(std::size_t n) {
    first.assign(n, 0);
    square.assign(n, 0);
    beyond.assign(n, 0);
  }
};

/// Normalizes one row. Missing values become the mean and leave mean and deviation unchanged, as do values
/// too far out to be readings. Pointers in a struct would prevent vectorization.
RIVULET_VECTOR_CODE void see_row(const float* __restrict x, float* __restrict seen, std::size_t count,
                                 const double* __restrict mean, const double* __restrict factor, double limit,
                                 double absurd, double* __restrict first, double* __restrict square,
                                 double* __restrict beyond) {
  for (std::size_t i = 0; i < count; ++i) {
    const double z = (static_cast<double>(x[i]) - mean[i]) * factor[i];
    const bool is_reading = std::abs(z) <= absurd;
    const double reading = is_reading ? z : 0;
    const double low = reading < -limit ? -limit : reading;
    const double in = low > limit ? limit : low;
    first[i] += in;
    square[i] += in * in + (is_reading ? 0.0 : 1.0);
    beyond[i] += static_cast<double>(static_cast<int>(z == z) & static_cast<int>(in != z));
    seen[i] = static_cast<float>(in);
  }
}

/// Adds a batch to a mean over rows.
void add_to(double& known, double sum, double rows, double weight) {
  known += weight * (sum / rows - known);
}

std::uint32_t too_large(const ColumnValues& values) {
  std::uint32_t count = 0;
  for (std::size_t row = 0; row < values.rows; ++row)
    count += std::abs(values.at(row)) > largest_value ? 1 : 0;
  return count;
}

double least_offset(const Column& c) {
  return std::max(least_deviation, least_relative_deviation * std::abs(c.shown_mean));
}

class NormalizingTrainer final : public Trainer {
 public:
  NormalizingTrainer(std::unique_ptr<Trainer> model, Device& device, const NormalizedColumns& columns)
      : model_(std::move(model)),
        device_(device),
        columns_(columns),
        layout_(with_columns(model_->layout(), columns)) {
    scaling_.resize(columns.size());
  }

  [[nodiscard]] const ModelLayout& layout() const noexcept override { return layout_; }

  Status initialize(ModelState& state, std::uint64_t seed) override {
    inner_.forget();
    std::ranges::fill(state.columns(), Column{});
    ModelState inner = ModelState::over(model_->layout(), state);
    return model_->initialize(inner, seed);
  }
  Result<StepReport> compute_gradients(const ModelState& state, const BatchView& batch,
                                       GradientView out) override;
  Result<StepReport> evaluate(const ModelState& state, const BatchView& batch) override {
    if (auto known = go_by(state); !known) return known.error();
    return model_->evaluate(inside(state), see(batch));
  }
  Result<std::vector<float>> predict(const ModelState& state, const BatchView& batch) override;

 private:
  [[nodiscard]] Block features_block() const { return {0, columns_.features, false}; }
  [[nodiscard]] Block targets_block() const { return {columns_.features, columns_.targets, true}; }
  const ModelState& inside(const ModelState& state) { return inner_.of(model_->layout(), state); }
  Status go_by(const ModelState& state);
  BatchView see(const BatchView& batch);
  std::span<const float> see_block(const Block& block, std::span<const float> values, std::size_t rows,
                                   std::vector<float>& seen);
  [[nodiscard]] float in_their_unit(std::size_t i, float output) const;
  void measure(const BatchView& batch, std::span<const Column> columns);
  void measure_column(const Block& block, std::size_t i, std::span<const float> values, std::size_t rows,
                      const Column& column);
  void show_mean(const Block& block, std::size_t i, std::size_t rows);
  void count_within(double reach, std::size_t at, const ColumnValues& values, const Column& column);
  void begin(const BatchView& batch, std::span<const Column> columns);
  template <class Each>
  void each_column(const BatchView& batch, const Each& each) {
    for (const auto& [block, values] :
         {std::pair(features_block(), batch.features), std::pair(targets_block(), batch.targets)})
      for (std::size_t i = 0; i < block.count; ++i) each(block, i, values);
  }

  const std::unique_ptr<Trainer> model_;
  Device& device_;
  const NormalizedColumns columns_;
  const ModelLayout layout_;
  // scratch
  InnerState inner_;
  Measured measured_;  ///< of the state, then including the batch
  Scaling scaling_;    ///< in use for the current batch
  Sums sums_;
  std::vector<float> features_;
  std::vector<float> targets_;
  std::vector<float> sorted_;
  std::vector<float> answers_;
  std::vector<std::uint32_t> beyond_;
};

/// Sets the scaling from the agreed columns, else from this device's measurements, else to the identity.
Status NormalizingTrainer::go_by(const ModelState& state) {
  auto host = device_.to_host(measured_in(state.buffers(), layout_));
  if (!host) return host.error();
  measured_.read(host.value(), columns_.size());
  const bool known = is_known(state.columns()) || measured_.rows > 0;
  scaling_.limit = known ? columns_.limit : std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const Column& c = state.columns()[i];
    const FirstRows own = c.rows > 0 ? FirstRows{} : measured_.first_rows(i);
    if (c.rows > 0)
      scaling_.set(i, c.shown_mean, c.shown_deviation);
    else if (known)
      scaling_.set(i, own.mean, deviation_of(own.mean, own.variance));
    else
      scaling_.set(i, 0, 1);
  }
  return ok();
}

Result<StepReport> NormalizingTrainer::compute_gradients(const ModelState& state, const BatchView& batch,
                                                         GradientView out) {
  if (auto known = go_by(state); !known) return known.error();
  if (batch.rows > 0) begin(batch, state.columns());
  const BatchView seen = batch.rows > 0 ? see(batch) : batch;
  if (batch.rows > 0) measure(batch, state.columns());
  const auto inner = out.slice(0, out.count - Measured::numbers(columns_.size()));
  auto report = model_->compute_gradients(inside(state), seen, inner);
  if (!report) return report;
  if (is_known(state.columns()) && batch.rows > 0) {
    beyond_.assign(sums_.beyond.begin(), sums_.beyond.end());
    report.value().beyond = beyond_;
  }
  if (columns_.targets > 0) {
    const auto answers = report.value().answers;
    answers_.resize(answers.size());
    for (std::size_t i = 0; i < answers.size(); ++i) answers_[i] = in_their_unit(i, answers[i]);
    report.value().answers = answers_;
  }
  const GradientView place = measured_in(out, layout_);
  auto host = device_.to_host(place);
  if (!host) return host.error();
  measured_.write(host.value());
  if (auto there = device_.from_host(host.value(), place); !there) return there.error();
  return report;
}

Result<std::vector<float>> NormalizingTrainer::predict(const ModelState& state, const BatchView& batch) {
  if (auto known = go_by(state); !known) return known.error();
  auto outputs = model_->predict(inside(state), see(batch));
  if (!outputs || columns_.targets == 0) return outputs;
  for (std::size_t i = 0; i < outputs.value().size(); ++i)
    outputs.value()[i] = in_their_unit(i, outputs.value()[i]);
  return outputs;
}

/// Scales back the i-th of outputs [rows, targets].
float NormalizingTrainer::in_their_unit(std::size_t i, float output) const {
  const std::size_t at = columns_.features + i % columns_.targets;
  const double deviation = scaling_.factor[at] > 0 ? 1 / scaling_.factor[at] : 0;
  return static_cast<float>(scaling_.mean[at] + deviation * output);
}

BatchView NormalizingTrainer::see(const BatchView& batch) {
  sums_.clear(columns_.size());
  BatchView seen = batch;
  if (columns_.features > 0)
    seen.features = see_block(features_block(), batch.features, batch.rows, features_);
  if (columns_.targets > 0) seen.targets = see_block(targets_block(), batch.targets, batch.rows, targets_);
  return seen;
}

std::span<const float> NormalizingTrainer::see_block(const Block& block, std::span<const float> values,
                                                     std::size_t rows, std::vector<float>& seen) {
  RIVULET_CHECK(values.size() == rows * block.count, "rows have the wrong shape");
  seen.resize(std::max(seen.size(), values.size()));
  for (std::size_t row = 0; row < rows; ++row)
    see_row(values.data() + row * block.count, seen.data() + row * block.count, block.count,
            scaling_.mean.data() + block.begin, scaling_.factor.data() + block.begin, scaling_.limit,
            scaling_.limit * scaling_.limit, sums_.first.data() + block.begin,
            sums_.square.data() + block.begin, sums_.beyond.data() + block.begin);
  return std::span(seen).first(values.size());
}

void NormalizingTrainer::measure(const BatchView& batch, std::span<const Column> columns) {
  each_column(batch, [&](const Block& block, std::size_t i, std::span<const float> values) {
    const std::size_t at = block.begin + i;
    if (columns[at].rows > 0)
      measure_column(block, i, values, batch.rows, columns[at]);
    else
      sums_.beyond[at] = too_large({values.data() + i, batch.rows, block.count});
  });
  measured_.rows += static_cast<double>(batch.rows);
}

void NormalizingTrainer::measure_column(const Block& block, std::size_t i, std::span<const float> values,
                                        std::size_t rows, const Column& column) {
  const std::size_t at = block.begin + i;
  const ColumnValues own{values.data() + i, rows, block.count};
  const auto now = static_cast<double>(rows);
  const double weight = now / (measured_.rows + now);
  const double looks_back = std::clamp(column.rows + measured_.rows + now, now, std::max(now, recent_rows));
  double& beyond = measured_.beyond[at];
  constexpr double all = std::numeric_limits<double>::infinity();
  bool changed = false;
  bool readings = false;
  if (column.shown_deviation == 0) {
    sums_.square[at] = 0;
    for (std::size_t row = 0; row < rows; ++row)
      sums_.beyond[at] += std::abs(own.at(row) - column.shown_mean) > least_offset(column) ? 1 : 0;
    beyond += (sums_.beyond[at] - beyond * now) / looks_back;
    changed = beyond > wake_share && beyond * looks_back >= fewest_to_wake;
  } else {
    const Outliers found = sums_.beyond[at] > 0 ? outliers_in(own, column, columns_.limit) : Outliers{};
    beyond = follow_outliers(beyond, found, now, column, looks_back);
    changed = has_changed(beyond) && std::abs(beyond) * looks_back >= fewest_of_change;
    readings = beyond > 0 && !found.close;
    // Excluded, not clipped: many clipped values would shift the statistics.
    if (found.doubtful()) count_within(columns_.limit, at, own, column);
    if (found.one_value && found.count == rows) show_mean(block, i, rows);
  }
  if (changed) count_within(readings ? columns_.limit * columns_.limit : all, at, own, column);
  if (changed || column.rows < recent_rows) sums_.beyond[at] = 0;  // not reported as outliers
  add_to(measured_.mean[at], sums_.first[at], now, weight);
  add_to(measured_.square[at], sums_.square[at], now, weight);
}

/// Shows the mean in place of a code that fills a batch: large clipped values would undo what was learned.
void NormalizingTrainer::show_mean(const Block& block, std::size_t i, std::size_t rows) {
  auto& seen = block.of_targets ? targets_ : features_;
  for (std::size_t row = 0; row < rows; ++row) seen[row * block.count + i] = 0;
}

/// Recomputes the statistics from unclipped values, without those beyond `reach` standard deviations. The
/// model sees clipped values until the statistics have followed.
void NormalizingTrainer::count_within(double reach, std::size_t at, const ColumnValues& values,
                                      const Column& column) {
  const bool rests = column.shown_deviation == 0;
  const double factor = rests ? 1 : 1 / column.shown_deviation;
  const double most = rests ? farthest_at_rest : farthest;
  double first = 0;
  double square = 0;
  for (std::size_t row = 0; row < values.rows; ++row) {
    const double z = (values.at(row) - column.shown_mean) * factor;
    const bool counts = std::abs(z) <= reach;
    const double counted = counts ? std::clamp(z, -most, most) : 0;
    first += counted;
    square += counts || rests ? counted * counted : 1;
  }
  sums_.first[at] = first;
  sums_.square[at] = square;
}

/// Normalizes columns without agreed statistics by this device's own rows.
void NormalizingTrainer::begin(const BatchView& batch, std::span<const Column> columns) {
  each_column(batch, [&](const Block& block, std::size_t i, std::span<const float> values) {
    const std::size_t at = block.begin + i;
    if (columns[at].rows > 0) return;
    FirstRows all = measured_.first_rows(at);
    all.add(first_rows({values.data() + i, batch.rows, block.count}, columns_.limit, sorted_));
    if (all.count > 0) scaling_.set(at, all.mean, deviation_of(all.mean, all.variance));
    measured_.set_first_rows(at, all, measured_.rows + static_cast<double>(batch.rows));
  });
  scaling_.limit = columns_.limit;
}

}  // namespace

std::optional<FeatureScaling> feature_scaling(const ModelState& state) {
  const std::size_t features = state.layout().normalized.features;
  if (features == 0 || !is_known(state.columns())) return std::nullopt;
  FeatureScaling all;
  for (const Column& c : state.columns().first(features)) {
    all.mean.push_back(c.shown_mean);
    all.factor.push_back(c.shown_deviation > 0 ? 1 / c.shown_deviation : 0);
  }
  return all;
}

std::optional<TargetScaling> target_scaling(const ModelState& state) {
  const std::size_t targets = state.layout().normalized.targets;
  if (targets == 0 || !is_known(state.columns())) return std::nullopt;
  TargetScaling all;
  for (const Column& c : state.columns().last(targets)) {
    all.mean.push_back(c.shown_mean);
    all.deviation.push_back(c.shown_deviation);
  }
  return all;
}

std::unique_ptr<Trainer> make_normalizing(std::unique_ptr<Trainer> model, Device& device,
                                          const NormalizedColumns& columns) {
  if (columns.size() == 0) return model;
  return std::make_unique<NormalizingTrainer>(std::move(model), device, columns);
}

}  // namespace rivulet::devices
