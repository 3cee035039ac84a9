#include "runtime/node/evaluator.h"

#include <algorithm>
#include <limits>

#include "runtime/node/node.h"
#include "runtime/node/node_config.h"
#include "stream/dataset.h"

namespace rivulet::runtime {
namespace {

constexpr std::size_t rows_per_step = 250;

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
  // Most records are one row; the one more is for looking behind the last.
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
    return Error{ErrorCode::invalid_config, path + ": no row of it could be decoded as decode.format = \"" +
                                                config.decode.format + "\""};
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
  for (std::size_t at = 0; at < data.rows(); at += rows_per_step) {
    auto part = trainer.evaluate(model, data.slice(at, std::min(rows_per_step, data.rows() - at)));
    if (!part) return part.error();
    add(sum, part.value());
  }
  return sum;
}

Evaluator::Evaluator(const Parts& parts)
    : parts_(parts),
      score_(parts.metrics.gauge("eval_score", {{"metric", "held_out_accuracy"}})),
      next_(parts.clock.now() + parts.every) {
  score_.set(std::numeric_limits<double>::quiet_NaN());
}

Turn Evaluator::step() {
  const TimePoint now = parts_.clock.now();
  if (!asked_) {
    if (now < next_) return {.wake_at = next_};
    parts_.snapshots.ask();
    asked_ = true;
    next_ = now + parts_.every;
  }
  if (!parts_.snapshots.ready()) return {.wake_at = now + std::chrono::milliseconds(100)};
  const std::size_t n = std::min(rows_per_step, parts_.data.rows() - at_);
  auto part = parts_.trainer.evaluate(parts_.snapshots.model(), parts_.data.slice(at_, n));
  if (!part) {
    parts_.log.write(Level::error, "the held-out rows cannot be measured", {{"error", part.error().message}});
    return {.finished = true};
  }
  add(sum_, part.value());
  at_ += n;
  if (at_ >= parts_.data.rows()) finish();
  return {.work = 1};
}

void Evaluator::finish() {
  const double accuracy = static_cast<double>(sum_.correct) / static_cast<double>(sum_.rows);
  parts_.status.held_out_accuracy.store(accuracy);
  score_.set(accuracy);
  reached_.add(parts_.snapshots.seconds(), accuracy);
  sum_ = {};
  at_ = 0;
  asked_ = false;
}

}  // namespace rivulet::runtime
