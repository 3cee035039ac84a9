#include "sync/coding/low_rank.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "core/check.h"
#include "core/rng.h"
#include "sync/coding/weighted_numbers.h"
#include "sync/collective/dense_sum.h"

namespace rivulet::sync {
namespace {

// PowerSGD (Vogels et al., NeurIPS 2019): one step of power iteration on the sum of M over all ranks. M is a
// rank's staged tensor, Q the agreed right matrix of the previous round:
//
//   1. P = sum of M Q over all ranks, a dense sum, with the elements of small tensors and the buffers
//      appended;
//   2. the columns of P are orthonormalized, and Q = sum of M^T P over all ranks, a dense sum.
//
// The agreed sum is P Q^T. A rank counts P (M^T P)^T as sent, and its residual keeps the rest. A view starts
// with a randomly drawn Q, which is the same on new members. Sends 2 (N - 1) / N of a slot.

template <class T>
class LowRankOf final : public Aggregation {
 public:
  Status begin(Transport& transport, const Exchange& exchange) override;
  Progress poll() override;
  bool wait() override { return sum_->wait(); }
  [[nodiscard]] const Error& error() const override { return error_; }

 private:
  enum class Step : std::uint8_t { lefts, rights, done, failed };

  [[nodiscard]] std::span<T> agreed() const {
    return exchange_.agreed.slice(0, exchange_.coding.shape->parameters()).template as<T>();
  }
  [[nodiscard]] std::size_t buffers_at() const { return std::max(layout_.left() + layout_.whole(), world()); }
  [[nodiscard]] std::size_t world() const { return transport_->world(); }
  Status begin_sum(std::size_t numbers, std::size_t buffers);
  Status begin_lefts();
  void take_lefts();
  void send_product();
  void finish();
  Progress fail(Error error);

  Transport* transport_ = nullptr;
  Exchange exchange_;
  LowRankLayout layout_;
  std::vector<T> right_;          ///< agreed Q of the previous round
  std::vector<T> left_;           ///< P of this round
  std::vector<T> whole_;          ///< summed elements of small tensors
  std::vector<T> mine_, summed_;  ///< input and output of the current sum
  ContributionShape shape_;       ///< shape of the current sum
  std::vector<double> alike_;     ///< weights of 1: staged parameters are already weighted
  const std::unique_ptr<Aggregation> sum_ = make_dense_sum();
  Step step_ = Step::done;
  Error error_;
};

template <class T>
Status LowRankOf<T>::begin(Transport& transport, const Exchange& exchange) {
  RIVULET_CHECK(exchange.weights.size() == transport.world(), "needs one weight per rank");
  RIVULET_CHECK(exchange.residual != nullptr, "this collective needs a residual");
  transport_ = &transport;
  exchange_ = exchange;
  alike_.assign(world(), 1.0);
  layout_ = LowRankLayout(*exchange.coding.shape, *exchange.coding.settings);
  right_.resize(layout_.right());
  renew_right<T>(layout_, derive_seed(exchange.view, "round", exchange.round), right_);
  step_ = Step::lefts;
  return begin_lefts();
}

/// Sums P, small tensors and buffers. Pads so that each rank of the sum has a part.
template <class T>
Status LowRankOf<T>::begin_lefts() {
  const std::size_t p = exchange_.coding.shape->parameters();
  const std::size_t buffers = exchange_.coding.shape->buffers;
  mine_.assign(buffers_at() + buffers, T{0});
  const std::span<const T> staged = exchange_.residual->staged().template as<T>();
  const std::span<T> mine = mine_;
  multiply_right<T>(layout_, staged, right_, mine.first(layout_.left()));
  take_whole<T>(layout_, staged, mine.subspan(layout_.left(), layout_.whole()));
  const double weight = exchange_.weights[transport_->rank()];
  if (weight > 0 && buffers > 0)
    scale_to(exchange_.mine.slice(p, buffers), weight,
             reinterpret_cast<std::byte*>(mine.subspan(buffers_at()).data()));
  if (layout_.right() == 0) exchange_.residual->sent_all();  // all tensors are small: a dense sum
  return begin_sum(buffers_at(), buffers);
}

template <class T>
Status LowRankOf<T>::begin_sum(std::size_t numbers, std::size_t buffers) {
  shape_ = {exchange_.coding.shape->scalar, {numbers}, buffers};
  summed_.assign(numbers + buffers, T{0});
  const auto view = [&](std::vector<T>& of) {
    return GradientView{.data = reinterpret_cast<std::byte*>(of.data()),
                        .count = of.size(),
                        .scalar = exchange_.agreed.scalar};
  };
  Exchange values = exchange_;
  values.weights = alike_;
  values.mine = view(mine_);
  values.agreed = view(summed_);
  values.coding.shape = &shape_;
  values.slot_bytes = numbers * sizeof(T);
  values.residual = nullptr;
  return sum_->begin(*transport_, values);
}

/// Takes the agreed P, small tensors and buffers out of the sum.
template <class T>
void LowRankOf<T>::take_lefts() {
  const std::span<const T> summed = summed_;
  left_.assign(summed.begin(), summed.begin() + static_cast<std::ptrdiff_t>(layout_.left()));
  orthonormalize<T>(layout_, left_);
  const auto whole = summed.subspan(layout_.left(), layout_.whole());
  whole_.assign(whole.begin(), whole.end());
  const std::size_t p = exchange_.coding.shape->parameters();
  const auto buffers = exchange_.agreed.slice(p, exchange_.coding.shape->buffers).template as<T>();
  std::ranges::copy(summed.subspan(buffers_at()), buffers.begin());
}

/// Counts this rank's product as sent before any rank has the result: a rank lost later may have sent its
/// part.
template <class T>
void LowRankOf<T>::send_product() {
  const std::span<const T> staged = exchange_.residual->staged().template as<T>();
  mine_.assign(std::max(layout_.right(), world()), T{0});
  const auto own = std::span(mine_).first(layout_.right());
  multiply_left<T>(layout_, staged, left_, own);
  std::vector<T> whole(layout_.whole());
  take_whole<T>(layout_, staged, whole);
  std::ranges::fill(agreed(), T{0});
  add_product<T>(layout_, left_, own, 1, agreed());
  add_whole<T>(layout_, whole, 1, agreed());
  exchange_.residual->sent(exchange_.agreed.slice(0, exchange_.coding.shape->parameters()),
                           exchange_.slot_bytes);
}

template <class T>
void LowRankOf<T>::finish() {
  if (layout_.right() > 0)
    right_.assign(summed_.begin(), summed_.begin() + static_cast<std::ptrdiff_t>(layout_.right()));
  std::ranges::fill(agreed(), T{0});
  add_product<T>(layout_, left_, right_, 1, agreed());
  add_whole<T>(layout_, whole_, 1, agreed());
}

template <class T>
Progress LowRankOf<T>::poll() {
  if (step_ == Step::failed) return Progress::failed;
  if (step_ == Step::done) return Progress::done;
  if (const Progress p = sum_->poll(); p != Progress::done)
    return p == Progress::failed ? fail(sum_->error()) : p;
  if (step_ == Step::lefts) {
    take_lefts();
    if (layout_.right() > 0) {
      send_product();
      step_ = Step::rights;
      if (auto begun = begin_sum(mine_.size(), 0); !begun) return fail(begun.error());
      return poll();
    }
  }
  finish();
  step_ = Step::done;
  return Progress::done;
}

template <class T>
Progress LowRankOf<T>::fail(Error error) {
  step_ = Step::failed;
  error_ = std::move(error);
  return Progress::failed;
}

/// Selects the scalar type of the contributions.
class LowRank final : public Aggregation {
 public:
  Status begin(Transport& transport, const Exchange& exchange) override {
    if (of_ == nullptr && exchange.agreed.scalar == Scalar::f32) of_ = std::make_unique<LowRankOf<float>>();
    if (of_ == nullptr) of_ = std::make_unique<LowRankOf<double>>();
    return of_->begin(transport, exchange);
  }
  Progress poll() override { return of_->poll(); }
  bool wait() override { return of_->wait(); }
  [[nodiscard]] const Error& error() const override { return of_->error(); }

 private:
  std::unique_ptr<Aggregation> of_;
};

}  // namespace

extern const AggregationEntry aggregation_low_rank;
const AggregationEntry aggregation_low_rank{
    .name = "low_rank",
    .help = "all-reduce of low-rank factors (PowerSGD)",
    .make = []() -> std::unique_ptr<Aggregation> { return std::make_unique<LowRank>(); },
    .fits = &sums_mixtures,
    .stands_in = true,
    .messages = 5,  // two sums
    .worth_saving = AggregationEntry::always};

}  // namespace rivulet::sync
