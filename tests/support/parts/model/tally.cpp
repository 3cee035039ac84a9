// Counts how often each row was trained, in its parameters: feature 0 of a row is its number k, and a step
// adds to parameter k how often the row was in the agreed batch. It has as many counters as model `linear` of
// the same configuration has parameters, so that its states can be read as that one's. Reports its progress
// on the process's KillBoard. Checks a group's reports about its rows without any code of the ledger.
#include <algorithm>
#include <cmath>
#include <thread>

#include "core/clock.h"
#include "devices/trainer.h"
#include "tests/support/kill_board.h"

namespace rivulet::devices {
namespace {

class TallyTrainer final : public Trainer {
 public:
  explicit TallyTrainer(std::size_t rows) {
    layout_.parameters = rows;
    layout_.parameter_slots = {{"tally", {static_cast<std::int64_t>(rows)}, 0, rows}};
  }
  [[nodiscard]] const ModelLayout& layout() const noexcept override { return layout_; }
  Status initialize(ModelState& state, std::uint64_t) override {
    std::ranges::fill(state.parameters().as<float>(), 0.0F);
    return ok();
  }
  Result<StepReport> compute_gradients(const ModelState&, const BatchView& batch, GradientView out) override {
    page_->phase = testing::KillPage::Phase::compute;
    std::this_thread::sleep_for(std::chrono::milliseconds(page_->compute_ms));
    const auto counts = out.as<float>();
    std::ranges::fill(counts, 0.0F);
    const std::vector<std::size_t> own = own_rows(batch, counts.size());
    for (const std::size_t row : own) counts[row] += 1.0F / static_cast<float>(own.size());
    page_->copies += batch.rows - own.size();
    page_->phase = testing::KillPage::Phase::idle;
    StepReport report;
    report.rows = batch.rows;
    return report;
  }
  /// The agreed mean of n rows is 1/n for each row that was in it once: the minimum above zero.
  Result<StepReport> evaluate(const ModelState&, const BatchView& batch) override {
    StepReport report;
    report.rows = batch.rows;
    return report;
  }
  Result<std::vector<float>> predict(const ModelState&, const BatchView& batch) override {
    return std::vector<float>(batch.rows, 0.0F);
  }

 private:
  /// Numbers of the rows that count, without injected rows.
  [[nodiscard]] std::vector<std::size_t> own_rows(const BatchView& batch, std::size_t counters) const {
    std::vector<std::size_t> own;
    const std::size_t columns = batch.rows > 0 ? batch.features.size() / batch.rows : 0;
    const std::size_t first = page_->own_first;
    const std::size_t end = page_->own_end > 0 ? std::size_t{page_->own_end} : counters;
    for (std::size_t i = 0; i < batch.rows; ++i) {
      const float number = batch.features[i * columns];
      if (number >= static_cast<float>(first) && number < static_cast<float>(end))
        own.push_back(static_cast<std::size_t>(number));
    }
    return own;
  }

  ModelLayout layout_;
  const std::shared_ptr<testing::KillPage> page_ = testing::KillBoard::of_this_process();
};

Result<std::unique_ptr<Trainer>> make(const ModelConfig& config, Device&) {
  std::int64_t columns = 1;
  for (const auto n : config.input) columns *= n;
  return std::unique_ptr<Trainer>(
      std::make_unique<TallyTrainer>(static_cast<std::size_t>(config.outputs * (columns + 1))));
}

}  // namespace

extern const ModelEntry model_tally;
const ModelEntry model_tally{"tally", "test only: counts every row", &make};

}  // namespace rivulet::devices
