// Two phases, the second depending on the first: a rotating root names positions, then all ranks sum only
// those (as in AR-Topk). Here the root names all positions, in reverse order.
#include <cstring>

#include "sync/collective/aggregation.h"

namespace rivulet::sync {
namespace {

class TwoPhases final : public Aggregation {
 public:
  Status begin(Transport& transport, const Exchange& x) override {
    transport_ = &transport;
    x_ = x;
    const auto n = static_cast<std::uint32_t>(x.mine.count);
    const auto root = static_cast<std::uint32_t>(x.round % transport.world());
    positions_.assign(n, 0);
    tickets_.clear();
    phase_ = 1;
    if (transport.rank() == root) {
      for (std::uint32_t i = 0; i < n; ++i) positions_[i] = n - 1 - i;
      for_each_peer([&](std::uint32_t p) {
        tickets_.push_back(transport.send(p, Lane::phase, std::as_bytes(std::span(positions_))));
      });
    } else {
      tickets_.push_back(transport.receive(root, Lane::phase, std::as_writable_bytes(std::span(positions_))));
    }
    return ok();
  }
  Progress poll() override {
    for (const Ticket t : tickets_) {
      const Progress p = transport_->poll(t);
      if (p == Progress::failed) error_ = transport_->error();
      if (p != Progress::done) return p;
    }
    if (phase_ == 2) return add_up();
    start_second();
    return poll();
  }
  [[nodiscard]] const Error& error() const override { return error_; }

 private:
  template <class F>
  void for_each_peer(F f) {
    for (std::uint32_t p = 0; p < transport_->world(); ++p)
      if (p != transport_->rank()) f(p);
  }
  void start_second() {
    phase_ = 2;
    tickets_.clear();
    const auto mine = x_.mine.as<float>();
    const auto weight = static_cast<float>(x_.weights[transport_->rank()]);
    values_.assign(transport_->world(), std::vector<float>(positions_.size()));
    auto& own = values_[transport_->rank()];
    for (std::size_t i = 0; i < positions_.size(); ++i)
      own[i] = weight == 0 ? 0 : weight * mine[positions_[i]];
    for_each_peer([&](std::uint32_t p) {
      tickets_.push_back(transport_->receive(p, Lane::sum, std::as_writable_bytes(std::span(values_[p]))));
      tickets_.push_back(transport_->send(p, Lane::sum, std::as_bytes(std::span(own))));
    });
  }
  Progress add_up() {
    auto out = x_.agreed.as<float>();
    for (auto& v : out) v = 0;
    for (const auto& values : values_)
      for (std::size_t i = 0; i < positions_.size(); ++i) out[positions_[i]] += values[i];
    return Progress::done;
  }

  Transport* transport_ = nullptr;
  Exchange x_;
  int phase_ = 0;
  std::vector<std::uint32_t> positions_;
  std::vector<std::vector<float>> values_;
  std::vector<Ticket> tickets_;
  Error error_;
};

}  // namespace
extern const AggregationEntry aggregation_two_phases;
const AggregationEntry aggregation_two_phases{
    "two_phases", "test only", [] { return std::unique_ptr<Aggregation>(std::make_unique<TwoPhases>()); }};
}  // namespace rivulet::sync
