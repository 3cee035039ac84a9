#include "sync/collective/gathered_sum.h"

#include <algorithm>
#include <string>

#include "core/check.h"
#include "sync/transport/gathering.h"

namespace rivulet::sync {
namespace {

class GatheredSum final : public SpeculativeAggregation {
 public:
  explicit GatheredSum(bool early) : early_(early) {}
  Status send(Transport& transport, const Exchange& exchange, bool has_rows) override;
  Status begin(Transport& transport, const Exchange& exchange) override;
  void give_up(std::span<const std::uint32_t> rows) override;
  Progress poll() override;
  [[nodiscard]] const Error& error() const override { return error_; }
  [[nodiscard]] std::optional<GradientView> elsewhere() const override {
    return total_->view(exchange_.agreed);
  }

 private:
  void contribute(bool something, std::uint32_t contributors, bool listens);
  Progress fail(Error error);

  const bool early_;
  Transport* transport_ = nullptr;
  Exchange exchange_;
  Ticket pending_;
  bool forgets_ = false;                     ///< discards the contributions
  std::shared_ptr<const PayloadSum> total_;  ///< null until done
  bool failed_ = false;
  Error error_;
};

Status GatheredSum::send(Transport& transport, const Exchange& exchange, bool has_rows) {
  transport_ = &transport;
  exchange_ = exchange;
  failed_ = false;
  contribute(has_rows, transport.world(), false);
  return ok();
}

Status GatheredSum::begin(Transport& transport, const Exchange& exchange) {
  RIVULET_CHECK(exchange.weights.size() == transport.world(), "needs one weight per rank");
  exchange_ = exchange;
  total_.reset();
  forgets_ = false;
  if (early_) return ok();  // send() has contributed already
  transport_ = &transport;
  failed_ = false;
  const bool contributes = exchange.sends(transport.rank());
  contribute(contributes, exchange.residual != nullptr ? transport.world() : exchange.contributors,
             !contributes);
  return ok();
}

void GatheredSum::give_up(std::span<const std::uint32_t>) {
  total_.reset();
  forgets_ = true;
}

void GatheredSum::contribute(bool something, std::uint32_t contributors, bool listens) {
  std::vector<std::byte> payload(something ? exchange_.payload_bytes() : 0);
  if (something) encode_contribution(exchange_, payload);
  pending_ = transport_->gathering()->contribute({.lane = early_ ? Lane::speculative : Lane::payload,
                                                  .header_bytes = something ? payload_header_bytes : 0,
                                                  .bytes = std::move(payload),
                                                  .contributors = contributors,
                                                  .receives_only = listens});
}

Progress GatheredSum::poll() {
  if (failed_) return Progress::failed;
  if (total_) return Progress::done;
  const Progress p = transport_->poll(pending_);
  if (p == Progress::failed) return fail(transport_->error());
  if (p == Progress::pending) return p;
  const auto contributed = transport_->gathering()->take(pending_);
  if (forgets_) {
    total_ = std::make_shared<PayloadSum>();
    return Progress::done;
  }
  const auto total = contributed->work.once<PayloadSum>(nullptr, [&] {
    return std::make_shared<PayloadSum>(sum_of_payloads(
        exchange_, [&](std::uint32_t rank) { return std::span<const std::byte>(contributed->of[rank]); }));
  });
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

Status add_payloads(const Exchange& exchange,
                    const std::function<std::span<const std::byte>(std::uint32_t)>& payload_of,
                    const GradientView& sum) {
  for (std::uint32_t rank = 0; rank < exchange.weights.size(); ++rank) {
    if (!exchange.sends(rank)) continue;
    if (auto added = add_contribution(exchange, rank, payload_of(rank), sum); !added) return added;
  }
  return ok();
}

PayloadSum sum_of_payloads(const Exchange& exchange,
                           const std::function<std::span<const std::byte>(std::uint32_t)>& payload_of) {
  PayloadSum total;
  total.numbers.resize(exchange.agreed.bytes());
  if (auto added = add_payloads(exchange, payload_of, total.view(exchange.agreed)); !added) {
    total.code = added.error().code;
    total.trouble = added.error().message;
  }
  return total;
}

std::unique_ptr<SpeculativeAggregation> make_gathered_sum(bool early) {
  return std::make_unique<GatheredSum>(early);
}

}  // namespace rivulet::sync
