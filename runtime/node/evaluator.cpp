#include "runtime/node/evaluator.h"

#include <algorithm>

#include "core/check.h"
#include "runtime/node/node.h"
#include "runtime/node/node_config.h"
#include "stream/dataset.h"

namespace rivulet::runtime {
namespace {

constexpr std::size_t rows_per_step = 250;
constexpr std::size_t classes_shown = 64;  // each makes a Prometheus series

void add(devices::StepReport& sum, const devices::StepReport& one) {
  sum.loss_sum += one.loss_sum;
  sum.correct += one.correct;
  sum.rows += one.rows;
}

}  // namespace

Result<std::unique_ptr<HeldOut>> HeldOut::open(const Config& config, const Catalog& catalog,
                                               const std::string& path, std::size_t rows_max) {
  auto dataset = stream::open_dataset(path, stream::Split::test);
  if (!dataset) return dataset.error();
  auto decoder = build_decoder(config, catalog);
  if (!decoder) return decoder.error();
  stream::Decoder& decode = *decoder.value();
  auto out = std::make_unique<HeldOut>();
  out->shape_ = decode.shape();
  const std::size_t columns = out->shape_.columns();
  const std::size_t targets = out->shape_.targets;
  // Most records have one row; one more slot detects the end.
  const std::size_t expected = std::min(rows_max, dataset.value()->size()) + 1;
  out->features_.reserve(expected * columns);
  out->targets_.reserve(expected * targets);
  out->tags_.reserve(expected);
  for (std::size_t i = 0; i < dataset.value()->size() && out->rows() < rows_max; ++i) {
    decode.begin(
        {.partition = {}, .offset = static_cast<std::int64_t>(i), .value = dataset.value()->value(i)});
    for (;;) {
      out->features_.resize((out->rows() + 1) * columns);
      out->targets_.resize((out->rows() + 1) * targets);
      const auto step =
          decode.next({std::span(out->features_).last(columns), std::span(out->targets_).last(targets)});
      if (step.kind == stream::Decoded::Kind::end) break;
      if (step.kind == stream::Decoded::Kind::row) out->tags_.emplace_back();
      if (step.kind == stream::Decoded::Kind::dropped)
        ++out->dropped_.at(static_cast<std::size_t>(step.reason));
    }
  }
  if (out->rows() == 0)
    return Error{ErrorCode::invalid_config,
                 path + ": no row could be decoded as decode.format = \"" + config.decode.format + "\""};
  return out;
}

BatchView HeldOut::slice(std::size_t begin, std::size_t n) const {
  const std::size_t columns = shape_.columns();
  return {std::span(features_).subspan(begin * columns, n * columns),
          std::span(targets_).subspan(begin * shape_.targets, n * shape_.targets), n,
          std::span(tags_).subspan(begin, n)};
}

Result<devices::StepReport> evaluate_all(devices::Trainer& trainer, const devices::ModelState& model,
                                         const HeldOut& data) {
  devices::StepReport sum;
  const devices::ModelState used = devices::averaged(model);
  for (std::size_t at = 0; at < data.rows(); at += rows_per_step) {
    auto part = trainer.evaluate(used, data.slice(at, std::min(rows_per_step, data.rows() - at)));
    if (!part) return part.error();
    add(sum, part.value());
  }
  return sum;
}

Evaluator::Evaluator(const Parts& parts)
    : parts_(parts), classes_(parts.classes.size()), next_(parts.clock.now() + parts.every) {
  parts.status.measures(parts.status.held_out_accuracy);
  for (const float target : parts_.data.slice(0, parts_.data.rows()).targets) {
    const auto c = static_cast<std::size_t>(target);
    if (c >= std::min(classes_.size(), classes_shown) || classes_[c].gauge != nullptr) continue;
    classes_[c].gauge = &parts.metrics.gauge("eval_class_recall", {{"class", parts.classes[c]}});
    classes_[c].gauge->set(not_measured);
  }
}

Turn Evaluator::step() {
  const TimePoint now = parts_.clock.now();
  if (!requested_) {
    if (now < next_) return {.wake_at = next_};
    parts_.snapshots.request();
    requested_ = true;
    next_ = now + parts_.every;
  }
  if (!parts_.snapshots.ready()) return {.wake_at = now + std::chrono::milliseconds(100)};
  const std::size_t n = std::min(rows_per_step, parts_.data.rows() - at_);
  const BatchView part = parts_.data.slice(at_, n);
  const auto outputs = parts_.trainer.predict(devices::averaged(parts_.snapshots.model()), part);
  if (!outputs) {
    parts_.log.write(Level::error, "the accuracy on held-out rows cannot be measured",
                     {{"error", outputs.error().message}});
    return {.finished = true};
  }
  count(outputs.value(), part.targets);
  at_ += n;
  if (at_ >= parts_.data.rows()) finish();
  return {.work = 1};
}

void Evaluator::count(const std::vector<float>& outputs, std::span<const float> targets) {
  const std::size_t n = classes_.size();
  RIVULET_CHECK(outputs.size() == targets.size() * n, "outputs have the wrong shape");
  for (std::size_t row = 0; row < targets.size(); ++row) {
    const auto of_row = std::span(outputs).subspan(row * n, n);
    Recall& of = classes_.at(static_cast<std::size_t>(targets[row]));
    ++of.rows;
    if (std::ranges::max_element(of_row) == of_row.begin() + static_cast<std::ptrdiff_t>(targets[row]))
      ++of.right;
  }
}

void Evaluator::finish() {
  std::uint64_t right = 0;
  for (Recall& c : classes_) {
    right += c.right;
    if (c.gauge != nullptr) c.gauge->set(static_cast<double>(c.right) / static_cast<double>(c.rows));
    c.rows = c.right = 0;
  }
  const double accuracy = static_cast<double>(right) / static_cast<double>(parts_.data.rows());
  parts_.status.held_out_accuracy = accuracy;
  reached_.add(parts_.snapshots.seconds(), accuracy);
  at_ = 0;
  requested_ = false;
}

}  // namespace rivulet::runtime
