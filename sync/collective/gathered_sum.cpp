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

class GatheredSum final : public Aggregation {
 public:
  Status begin(Transport& transport, const Exchange& exchange) override;
  Progress poll() override;
  [[nodiscard]] const Error& error() const override { return error_; }
  [[nodiscard]] std::optional<GradientView> elsewhere() const override {
    GradientView sum = exchange_.agreed;
    sum.data = total_->numbers.data();
    return sum;
  }

 private:
  Result<std::vector<std::byte>> encode_mine() const;
  [[nodiscard]] std::shared_ptr<const Total> add_up(const Gathered& told) const;
  Progress fail(Error error);

  Transport* transport_ = nullptr;
  Exchange exchange_;
  Ticket pending_;
  std::shared_ptr<const Total> total_;  ///< null: not done
  bool failed_ = false;
  Error error_;
};

Status GatheredSum::begin(Transport& transport, const Exchange& exchange) {
  const auto& weights = exchange.plan->weights;
  RIVULET_CHECK(weights.size() == transport.world(), "a weight per rank");
  transport_ = &transport;
  exchange_ = exchange;
  total_.reset();
  failed_ = false;
  auto mine = encode_mine();
  if (!mine) return mine.error();
  pending_ = transport.gathering()->tell({.lane = Lane::payload,
                                          .header_bytes = payload_header_bytes,
                                          .bytes = std::move(mine).value(),
                                          .tellers = exchange.contributors,
                                          .listens = !(weights[transport.rank()] > 0)});
  return ok();
}

/// Nothing at weight 0, as the plan told everybody.
Result<std::vector<std::byte>> GatheredSum::encode_mine() const {
  const double weight = exchange_.plan->weights[transport_->rank()];
  if (!(weight > 0)) return std::vector<std::byte>();
  std::vector<std::byte> payload(exchange_.codec->bytes_max(exchange_.mine.count, exchange_.mine.scalar));
  const auto used = encode_contribution(exchange_, weight, payload);
  if (!used) return used.error();
  payload.resize(used.value());
  return payload;
}

std::shared_ptr<const Total> GatheredSum::add_up(const Gathered& told) const {
  auto total = std::make_shared<Total>();
  total->numbers.resize(exchange_.agreed.bytes());
  GradientView sum = exchange_.agreed;
  sum.data = total->numbers.data();
  for (std::uint32_t rank = 0; rank < told.of.size(); ++rank) {
    if (!(exchange_.plan->weights[rank] > 0)) continue;
    if (auto added = add_contribution(exchange_, rank, told.of[rank], sum); !added) {
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

std::unique_ptr<Aggregation> make_gathered_sum() {
  return std::make_unique<GatheredSum>();
}

}  // namespace rivulet::sync
