#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/row.h"
#include "devices/model_support.h"
#include "devices/trainer.h"

namespace rivulet::devices {

/// Loss, hits and output gradients of rows, for models that compute their own gradients. T is the type of the
/// outputs. Owner: a trainer.
template <class T>
class RowLoss {
 public:
  explicit RowLoss(const ModelConfig& config)
      : outputs_(config.outputs), classifies_(config.loss == Loss::cross_entropy) {}

  /// Starts a batch. Errors: bad_record (names the row and its label).
  Status begin(const BatchView& batch) {
    answers_.clear();
    if (!classifies_) return ok();
    return read_classes(batch, outputs_, classes_);
  }

  /// Adds the row to the report and replaces its outputs by d (mean loss of the batch) / d output.
  void judge(const BatchView& batch, std::size_t row, std::span<T> outputs, StepReport& report) {
    report.rows += 1;
    if (classifies_) {
      const auto target = static_cast<std::size_t>(classes_[row]);
      const T weight = batch.class_weights.empty() ? T{1} : static_cast<T>(batch.class_weights[target]);
      judge_class(target, static_cast<T>(batch.rows) / weight, outputs, report);
    } else {
      judge_numbers(batch.targets.subspan(row * outputs.size(), outputs.size()), static_cast<T>(batch.rows),
                    outputs, report);
    }
  }

  /// StepReport::answers of the rows judged since begin().
  [[nodiscard]] std::span<const float> answers() const noexcept { return answers_; }

 private:
  /// The row contributes 1 / `rows` of the gradient.
  void judge_class(std::size_t target, T rows, std::span<T> outputs, StepReport& report) {
    const auto highest = std::ranges::max_element(outputs);
    const auto answer = static_cast<std::size_t>(highest - outputs.begin());
    report.correct += answer == target ? 1 : 0;
    answers_.push_back(static_cast<float>(answer));
    const T shift = *highest;  // keeps exp() in range
    const T target_output = outputs[target] - shift;
    T sum = 0;
    for (T& y : outputs) sum += y = std::exp(y - shift);
    report.loss_sum += static_cast<double>(std::log(sum) - target_output);
    for (T& y : outputs) y /= sum * rows;
    outputs[target] -= T{1} / rows;
  }

  /// Mean over the outputs of a row, as torch's mse_loss.
  void judge_numbers(std::span<const float> targets, T rows, std::span<T> outputs, StepReport& report) {
    const T count = static_cast<T>(outputs.size());
    T sum = 0;
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      answers_.push_back(static_cast<float>(outputs[o]));
      const T difference = outputs[o] - static_cast<T>(targets[o]);
      sum += difference * difference;
      outputs[o] = T{2} * difference / (rows * count);
    }
    report.loss_sum += static_cast<double>(sum / count);
  }

  // constant
  std::int64_t outputs_;
  bool classifies_;
  // scratch
  std::vector<std::int64_t> classes_;
  std::vector<float> answers_;
};

}  // namespace rivulet::devices
