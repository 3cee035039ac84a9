#include "tests/support/sim_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <utility>

namespace rivulet::testing {
namespace {

/// splitmix64: a number that depends on all bits of a position.
std::uint64_t mixed(std::int32_t partition, std::int64_t offset, std::uint32_t row) {
  std::uint64_t x =
      (static_cast<std::uint64_t>(partition) << 56U) ^ (static_cast<std::uint64_t>(offset) << 8U) ^ row;
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

/// An integer: sums of it are exact in doubles.
float number_of_row(std::int32_t partition, std::int64_t offset, std::uint32_t row) {
  return static_cast<float>(1 + mixed(partition, offset, row) % 65'536);
}

/// Between -1 and 1.
double place_of(double number) {
  return number / 32'768 - 1;
}

/// 0.5 - 2x plus noise.
double height_of(double number) {
  return 0.5 - 2 * place_of(number) + (std::fmod(number, 7) - 3) / 8;
}

/// Residual of a row from a line.
double miss(double height, double slope, double number) {
  return height + slope * place_of(number) - height_of(number);
}

class SimSource final : public stream::RecordSource {
 public:
  SimSource(std::int32_t partition, const SimStreams& streams, const Clock& clock, CommitWatch on_commit)
      : every_(from_seconds(1.0 / streams.records_per_second)),
        clock_(clock),
        streams_(streams),
        on_commit_(std::move(on_commit)) {
    state_.id = {0, partition};
    state_.next_offset = state_.low_watermark = state_.high_watermark = kept_from();
  }

  Result<std::span<const Record>> poll(std::size_t max_records, Duration) override {
    records_.clear();
    values_.clear();
    state_.high_watermark = clock_.now().time_since_epoch() / every_;
    state_.paused = max_records == 0;
    if (!reads_) return std::span<const Record>(records_);
    if (clock_.now() < streams_.silent_until) {
      streams_.faults.count(SimFault::silence);
      return std::span<const Record>(records_);
    }
    pass_deleted();
    for (; state_.next_offset < state_.high_watermark && records_.size() < max_records;
         ++state_.next_offset) {
      if (kind_of_record(state_.id.partition, state_.next_offset) == SimRecord::hole) continue;
      values_.push_back(value_at(state_.next_offset));
      records_.push_back({state_.id, state_.next_offset, 0, std::as_bytes(std::span(values_.back())), false});
    }
    return std::span<const Record>(records_);
  }
  Status commit(std::span<const NextOffset> positions) override {
    on_commit_(positions);
    return ok();
  }
  std::vector<stream::Gap> take_gaps() override { return std::exchange(gaps_, {}); }
  Status assign(const Assignment& assignment) override {
    gaps_.clear();
    const auto own = assignment.cursors.find(state_.id);
    const bool had = std::exchange(reads_, own != assignment.cursors.end());
    if (!reads_) return ok();
    if (own->second)
      state_.next_offset = own->second->offset;
    else if (!had)
      state_.next_offset = kept_from();
    return ok();
  }
  [[nodiscard]] std::span<const stream::PartitionState> partitions() const noexcept override {
    return {&state_, reads_ ? 1U : 0U};
  }
  [[nodiscard]] bool exhausted() const noexcept override { return false; }
  [[nodiscard]] TimePoint next_due() const noexcept override {
    if (clock_.now() < streams_.silent_until) return streams_.silent_until;
    if (state_.paused || !reads_) return TimePoint::max();
    if (state_.next_offset < state_.high_watermark) return clock_.now();
    return TimePoint((state_.high_watermark + 1) * every_);
  }

 private:
  [[nodiscard]] std::int64_t kept_from() const {
    return streams_.kept_from[static_cast<std::size_t>(state_.id.partition)];
  }
  void pass_deleted() {
    state_.low_watermark = kept_from();
    if (state_.next_offset >= kept_from()) return;
    gaps_.push_back({state_.id, state_.next_offset, kept_from()});
    state_.skipped += kept_from() - state_.next_offset;
    state_.next_offset = kept_from();
  }
  /// Label, partition, number; row after row. A bad record lacks one value.
  [[nodiscard]] std::vector<float> value_at(std::int64_t offset) const {
    std::vector<float> value;
    for (std::uint32_t row = 0; row < rows_in_record(state_.id.partition, offset); ++row) {
      value.push_back(sim_row_label);
      value.push_back(static_cast<float>(state_.id.partition));
      value.push_back(number_of_row(state_.id.partition, offset, row));
    }
    if (kind_of_record(state_.id.partition, offset) == SimRecord::bad) value = {0, 0};
    return value;
  }

  const Duration every_;
  const Clock& clock_;
  const SimStreams& streams_;
  const CommitWatch on_commit_;
  stream::PartitionState state_;
  bool reads_ = false;  ///< after the assignment
  std::vector<Record> records_;
  std::deque<std::vector<float>> values_;
  std::vector<stream::Gap> gaps_;
};

/// A gradient is the mean over a batch's rows, and the agreed one the mean over all rows. The third value of
/// a partition, one over the batch's rows, becomes one over all rows, which recovers the sums.
class SumsTrainer final : public devices::Trainer {
 public:
  explicit SumsTrainer(std::size_t partitions) {
    layout_.scalar = Scalar::f64;
    layout_.parameters = 3 * partitions + 2;
    layout_.parameter_slots = {{"sums", {static_cast<std::int64_t>(3 * partitions)}, 0, 3 * partitions},
                               {"line", {2}, 3 * partitions, 2}};
  }
  [[nodiscard]] const devices::ModelLayout& layout() const noexcept override { return layout_; }
  Status initialize(devices::ModelState& state, std::uint64_t) override {
    std::ranges::fill(state.parameters().as<double>(), 0.0);
    std::ranges::fill(state.optimizer_array(0).as<double>(), 0.0);
    return ok();
  }
  Result<devices::StepReport> compute_gradients(const devices::ModelState& state, const BatchView& batch,
                                                GradientView out) override {
    const SimLine line = line_in(state);
    const auto sums = out.as<double>();
    const std::size_t behind = layout_.parameters - 2;
    std::ranges::fill(sums, 0.0);
    const double share = batch.rows > 0 ? 1.0 / static_cast<double>(batch.rows) : 0;
    for (std::size_t i = 0; i < batch.rows; ++i) {
      const auto at = 3 * static_cast<std::size_t>(batch.features[i * sim_row_columns]);
      sums[at] += share;
      sums[at + 1] += share * static_cast<double>(batch.features[i * sim_row_columns + 1]);
      sums[at + 2] = share;
      const double number = batch.features[i * sim_row_columns + 1];
      const double too_high = share * 2 * miss(line.height, line.slope, number);
      sums[behind] += too_high;
      sums[behind + 1] += too_high * place_of(number);
    }
    return report_of(batch);
  }
  Result<devices::StepReport> evaluate(const devices::ModelState&, const BatchView& batch) override {
    return report_of(batch);
  }
  Result<std::vector<float>> predict(const devices::ModelState&, const BatchView& batch) override {
    return std::vector<float>(batch.rows, 0.0F);
  }

 private:
  static devices::StepReport report_of(const BatchView& batch) {
    devices::StepReport report;
    report.rows = batch.rows;
    return report;
  }
  devices::ModelLayout layout_;
};

/// Adds the sums of the agreed mean's rows; the line steps as in sgd.
void step_sums(const devices::OptimizerStep& step) {
  const auto mean = step.gradient.as<double>();
  const auto sums = step.parameters.as<double>();
  const auto moves = step.arrays[0].as<double>();
  const std::size_t behind = sums.size() - 2;
  bool any = false;
  for (std::size_t at = 0; at < behind; at += 3) {
    if (mean[at + 2] == 0) continue;
    any = true;
    sums[at] += std::round(mean[at] / mean[at + 2]);
    sums[at + 1] += std::round(mean[at + 1] / mean[at + 2]);
  }
  for (std::size_t at = behind; any && at < behind + 2; ++at) {
    moves[at] = sim_momentum * moves[at] + mean[at];
    sums[at] -= step.learning_rate * moves[at];
  }
}

Result<std::unique_ptr<devices::Trainer>> make_sums(const devices::ModelConfig& config, devices::Device&) {
  return std::unique_ptr<devices::Trainer>(std::make_unique<SumsTrainer>(
      static_cast<std::size_t>(config.settings.integers("model.mlp.hidden").front())));
}

}  // namespace

SimRecord kind_of_record(std::int32_t partition, std::int64_t offset) {
  const std::uint64_t drawn = mixed(partition, offset, 1'000) % 32;
  return drawn == 0 ? SimRecord::hole : drawn == 1 ? SimRecord::bad : SimRecord::rows;
}

std::uint32_t rows_in_record(std::int32_t partition, std::int64_t offset) {
  if (kind_of_record(partition, offset) != SimRecord::rows) return 0;
  return mixed(partition, offset, 1'001) % 4 == 0 ? 3 : 1;
}

RowSums RowTable::below(std::int32_t partition, const RowCursor& end) {
  auto& sums = below_[partition];
  if (sums.empty()) sums.emplace_back();
  const auto add = [&](RowSums& to, std::int64_t offset, std::uint32_t rows) {
    for (std::uint32_t row = 0; row < rows; ++row) {
      to.rows += 1;
      to.numbers += static_cast<double>(number_of_row(partition, offset, row));
    }
  };
  while (std::cmp_less_equal(sums.size(), end.offset)) {
    RowSums next = sums.back();
    const auto offset = static_cast<std::int64_t>(sums.size()) - 1;
    add(next, offset, rows_in_record(partition, offset));
    sums.push_back(next);
  }
  RowSums all = sums[static_cast<std::size_t>(end.offset)];
  add(all, end.offset, std::min(end.row, rows_in_record(partition, end.offset)));
  return all;
}

void for_each_row(std::int32_t partition, const RowCursor& from, const RowCursor& to,
                  const std::function<void(const RowCursor& at, double number)>& take) {
  for (RowCursor at = from; at < to; at = {at.offset + 1, 0})
    for (; at.row < rows_in_record(partition, at.offset) && at < to; ++at.row)
      take(at, static_cast<double>(number_of_row(partition, at.offset, at.row)));
}

std::unique_ptr<stream::RecordSource> make_sim_source(std::int32_t partition, const SimStreams& streams,
                                                      const Clock& clock, CommitWatch on_commit) {
  return std::make_unique<SimSource>(partition, streams, clock, std::move(on_commit));
}

double loss_of(const SimLine& line) {
  static const auto held_out = [] {
    std::array<std::pair<double, double>, 70> rows;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double number = 1 + 936.0 * static_cast<double>(i);
      rows[i] = {place_of(number), height_of(number)};
    }
    return rows;
  }();
  double loss = 0;
  for (const auto& [place, height] : held_out) {
    const double by = line.height + line.slope * place - height;
    loss += by * by;
  }
  return loss / static_cast<double>(held_out.size());
}

SimLine learned(SimLine line, std::span<const double> numbers) {
  if (numbers.empty()) return line;
  double height = 0;
  double slope = 0;
  for (const double number : numbers) {
    height += miss(line.height, line.slope, number);
    slope += miss(line.height, line.slope, number) * place_of(number);
  }
  const double all = static_cast<double>(numbers.size());
  line.height_moves = sim_momentum * line.height_moves + 2 * height / all;
  line.slope_moves = sim_momentum * line.slope_moves + 2 * slope / all;
  line.height -= sim_learning_rate * line.height_moves;
  line.slope -= sim_learning_rate * line.slope_moves;
  return line;
}

std::span<const devices::OptimizerEntry* const> sim_optimizers() noexcept {
  static constexpr devices::RememberedArray arrays[] = {{"momentum", devices::ArrayKind::delta}};
  static const devices::OptimizerEntry entry{"sgd", "test only: adds rows up", {}, arrays, &step_sums};
  static const devices::OptimizerEntry* const all[] = {&entry};
  return all;
}

std::span<const devices::ModelEntry* const> sim_models() noexcept {
  static const devices::ModelEntry entry{"sums", "test only: adds rows up", &make_sums};
  static const devices::ModelEntry* const all[] = {&entry};
  return all;
}

RowSums sums_in(const devices::ModelState& model, std::int32_t partition) {
  const auto sums = model.parameters().as<double>();
  return {sums[3 * static_cast<std::size_t>(partition)], sums[3 * static_cast<std::size_t>(partition) + 1]};
}

SimLine line_in(const devices::ModelState& model) {
  const auto all = model.parameters().as<double>();
  const auto moves = model.optimizer_array(0).as<double>();
  const std::size_t behind = all.size() - 2;
  return {all[behind], all[behind + 1], moves[behind], moves[behind + 1]};
}

}  // namespace rivulet::testing
