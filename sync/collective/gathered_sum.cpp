#include "sync/collective/gathered_sum.h"

#include <algorithm>
#include <string>

#include "core/check.h"
#include "sync/collective/gathering.h"

namespace rivulet::sync {
namespace {

/// The sum, or why there is none.
struct Total {
  mutable std::vector<std::byte> numbers;  ///< nobody changes them; a GradientView cannot say so
  ErrorCode code{};
  std::string trouble;
  bool operator==(const Total&) const = default;
};

class GatheredSum final : public SpeculativeAggregation {
 public:
  explicit GatheredSum(Weighing weighing) : weighing_(weighing) {}
  Status send(Transport& transport, const Exchange& exchange, bool has_rows) override;
  Status begin(Transport& transport, const Exchange& exchange) override;
  void give_up(std::span<const std::uint32_t> rows) override;
  Progress poll() override;
  [[nodiscard]] const Error& error() const override { return error_; }
  [[nodiscard]] std::optional<GradientView> elsewhere() const override {
    GradientView sum = exchange_.agreed;
    sum.data = total_->numbers.data();
    return sum;
  }

 private:
  Status tell(std::optional<double> weight, std::uint32_t tellers, bool listens);
  [[nodiscard]] std::shared_ptr<const Total> add_up(const Gathered& told) const;
  Progress fail(Error error);

  const Weighing weighing_;
  Transport* transport_ = nullptr;
  Exchange exchange_;
  Ticket pending_;
  bool forgets_ = false;                ///< what is told is for nothing
  std::shared_ptr<const Total> total_;  ///< null: not done
  bool failed_ = false;
  Error error_;
};

Status GatheredSum::send(Transport& transport, const Exchange& exchange, bool has_rows) {
  transport_ = &transport;
  exchange_ = exchange;
  failed_ = false;
  return tell(has_rows ? std::optional(1.0) : std::nullopt, transport.world(), false);
}

Status GatheredSum::begin(Transport& transport, const Exchange& exchange) {
  const auto& weights = exchange.weights;
  RIVULET_CHECK(weights.size() == transport.world(), "a weight per rank");
  exchange_ = exchange;
  total_.reset();
  forgets_ = false;
  if (weighing_ == Weighing::by_receiver) return ok();  // send() has told
  transport_ = &transport;
  failed_ = false;
  const double weight = weights[transport.rank()];
  const bool tells = weight > 0;
  return tell(tells ? std::optional(weight) : std::nullopt, exchange.contributors, !tells);
}

void GatheredSum::give_up(std::span<const std::uint32_t>) {
  total_.reset();
  forgets_ = true;
}

/// Nothing without a weight.
Status GatheredSum::tell(std::optional<double> weight, std::uint32_t tellers, bool listens) {
  std::vector<std::byte> payload;
  if (weight) {
    payload.resize(exchange_.compressor->bytes_max(exchange_.mine.count, exchange_.mine.scalar));
    const auto used = weighing_ == Weighing::by_sender
                          ? encode_contribution(exchange_, *weight, payload)
                          : exchange_.compressor->encode(exchange_.mine, *weight, 1.0, payload);
    if (!used) return used.error();
    payload.resize(used.value());
  }
  pending_ = transport_->gathering()->tell(
      {.lane = weighing_ == Weighing::by_sender ? Lane::payload : Lane::speculative,
       .header_bytes = weight ? payload_header_bytes : 0,
       .bytes = std::move(payload),
       .tellers = tellers,
       .listens = listens});
  return ok();
}

std::shared_ptr<const Total> GatheredSum::add_up(const Gathered& told) const {
  auto total = std::make_shared<Total>();
  total->numbers.resize(exchange_.agreed.bytes());
  GradientView sum = exchange_.agreed;
  sum.data = total->numbers.data();
  for (std::uint32_t rank = 0; rank < told.of.size(); ++rank) {
    if (!(exchange_.weights[rank] > 0)) continue;
    if (auto added = add_contribution(exchange_, weighing_, rank, told.of[rank], sum); !added) {
      total->code = added.error().code;
      total->trouble = added.error().message;
      break;
    }
  }
  return total;
}

Progress GatheredSum::poll() {
  if (failed_) return Progress::failed;
  if (total_) return Progress::done;
  const Progress p = transport_->poll(pending_);
  if (p == Progress::failed) return fail(transport_->error());
  if (p == Progress::pending) return p;
  const auto told = transport_->gathering()->take(pending_);
  if (forgets_) {
    total_ = std::make_shared<Total>();
    return Progress::done;
  }
  const auto total = told->work.once<Total>(nullptr, [&] { return add_up(*told); });
  if (!total->trouble.empty()) return fail({total->code, total->trouble});
  total_ = total;
  return Progress::done;
}

Progress GatheredSum::fail(Error error) {
  failed_ = true;
  error_ = std::move(error);
  return Progress::failed;
}

}  // namespace

std::unique_ptr<SpeculativeAggregation> make_gathered_sum(Weighing weighing) {
  return std::make_unique<GatheredSum>(weighing);
}

}  // namespace rivulet::sync
