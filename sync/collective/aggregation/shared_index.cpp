#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/check.h"
#include "sync/coding/positions.h"
#include "sync/coding/selection.h"
#include "sync/coding/weighted_numbers.h"
#include "sync/collective/dense_sum.h"

namespace rivulet::sync {
namespace {

// AR-Topk (Tyagi and Swany, BigData 2023): one rank selects the elements that all ranks sum.
//
//   0. root: STAR, rank (applied rounds mod N); VAR, rank with the largest squared norm, exchanged first;
//   1. the root selects its largest elements and sends their positions to all;
//   2. all ranks densely sum their elements there and their buffers, and keep the rest.
//
// A rank's own large elements may wait for N rounds. The root sends k coded positions, and each rank
// 2 (N - 1) / N of k values, uncompressed: without scales, and only the sum is rounded.

constexpr std::array keys{
    Key{.name = "sync.shared_index.root",
        .type = KeyType::text,
        .text = "\"turns\"",
        .help = "device that selects the positions: round robin, or the one with the largest norm (AR-Topk)",
        .choices = "turns | largest"},
};

/// entries u32 | position code u8, 0 u24 | positions | zeros
constexpr std::size_t head_bytes = 8;

std::size_t entries_of(const Exchange& exchange) {
  return sync::entries_of(exchange.coding.shape->parameters(), exchange.coding.keep_ratio);
}

std::size_t message_bytes(std::size_t entries, std::size_t count) {
  const double bits = expected_position_bits(static_cast<double>(entries), static_cast<double>(count));
  return head_bytes + static_cast<std::size_t>(std::ceil(bits / 8)) + 2;
}

class SharedIndex final : public Aggregation {
 public:
  Status begin(Transport& transport, const Exchange& exchange) override;
  Progress poll() override;
  bool wait() override {
    if (step_ == Step::summing) return sum_->wait();
    return pending_.empty() || transport_->wait(pending_.back());
  }
  [[nodiscard]] const Error& error() const override { return error_; }

 private:
  enum class Step : std::uint8_t { electing, contributing, summing, done, failed };

  [[nodiscard]] std::uint32_t me() const { return transport_->rank(); }
  [[nodiscard]] std::size_t number_bytes() const { return bytes_of(exchange_.agreed.scalar); }
  [[nodiscard]] GradientView view(std::vector<std::byte>& bytes) const {
    return {.data = bytes.data(), .count = bytes.size() / number_bytes(), .scalar = exchange_.agreed.scalar};
  }
  void begin_election();
  Status elect();
  void begin_contributing();
  void select();
  void write_positions();
  Status read_positions();
  Status begin_sum();
  void spread_sum();
  Progress fail(Error error);

  Transport* transport_ = nullptr;
  Exchange exchange_;
  std::uint32_t root_ = 0;
  std::vector<std::uint32_t> positions_;
  std::vector<std::byte> message_;
  std::vector<double> energies_;  ///< [N], squared norm of each rank's selection
  std::vector<Ticket> pending_;
  const std::unique_ptr<Aggregation> sum_ = make_dense_sum();
  ContributionShape shape_;      ///< shape of the sum
  std::vector<double> alike_;    ///< weights of 1: staged parameters are already weighted
  std::vector<std::byte> mine_;  ///< elements at the positions, then buffers
  std::vector<std::byte> summed_;
  Step step_ = Step::done;
  Error error_;
};

Status SharedIndex::begin(Transport& transport, const Exchange& exchange) {
  RIVULET_CHECK(exchange.weights.size() == transport.world(), "needs one weight per rank");
  RIVULET_CHECK(exchange.residual != nullptr, "this collective needs a residual");
  transport_ = &transport;
  exchange_ = exchange;
  root_ = static_cast<std::uint32_t>(exchange.coding.draw % transport.world());
  pending_.clear();
  message_.assign(message_bytes(entries_of(exchange), exchange.coding.shape->parameters()), std::byte{0});
  if (exchange.coding.settings->text(keys[0].name) == "largest")
    begin_election();
  else
    begin_contributing();
  return ok();
}

/// Selects elements and exchanges their squared norm with all ranks.
void SharedIndex::begin_election() {
  select();
  energies_.assign(transport_->world(), 0);
  const GradientView staged = exchange_.residual->staged();
  for (const std::uint32_t at : positions_) {
    const double x = staged.scalar == Scalar::f32 ? staged.as<float>()[at] : staged.as<double>()[at];
    energies_[me()] += x * x;
  }
  const auto of = [&](std::uint32_t rank) { return std::as_writable_bytes(std::span(&energies_[rank], 1)); };
  for (std::uint32_t k = 1; k < transport_->world(); ++k) {
    const std::uint32_t peer = (me() + k) % transport_->world();
    pending_.push_back(transport_->receive(peer, Lane::phase, of(peer)));
    pending_.push_back(transport_->send(peer, Lane::phase, of(me())));
  }
  step_ = Step::electing;
}

Status SharedIndex::elect() {
  for (std::uint32_t rank = 0; rank < energies_.size(); ++rank) {
    if (std::isnan(energies_[rank]) || energies_[rank] < 0)
      return Error{ErrorCode::protocol, "rank " + std::to_string(rank) + " reports a squared norm of " +
                                            std::to_string(energies_[rank])};
  }
  root_ = static_cast<std::uint32_t>(std::ranges::max_element(energies_) - energies_.begin());
  return ok();
}

void SharedIndex::begin_contributing() {
  if (me() != root_) {
    pending_.push_back(transport_->receive(root_, Lane::phase, message_));
  } else {
    if (step_ != Step::electing) select();
    for (std::uint32_t k = 1; k < transport_->world(); ++k)
      pending_.push_back(transport_->send((me() + k) % transport_->world(), Lane::phase, message_));
  }
  step_ = Step::contributing;
}

/// Selects the largest elements whose positions fit.
void SharedIndex::select() {
  const GradientView staged = exchange_.residual->staged();
  const auto largest = [&](std::size_t k) {
    staged.scalar == Scalar::f32 ? select_largest<float>(staged.as<float>(), k, positions_)
                                 : select_largest<double>(staged.as<double>(), k, positions_);
  };
  const std::size_t room = 8 * (message_.size() - head_bytes);
  largest(entries_of(exchange_));
  while (cost_of_positions(positions_).bits > room) largest(positions_.size() - 1 - positions_.size() / 64);
  write_positions();
}

void SharedIndex::write_positions() {
  const PositionCost cost = cost_of_positions(positions_);
  BitWriter out(message_);
  out.put(static_cast<std::uint32_t>(positions_.size()), 32);
  out.put(static_cast<std::uint32_t>(cost.code), 32);
  put_positions(positions_, cost, out);
}

Status SharedIndex::read_positions() {
  const auto bad = [&] {
    return Error{ErrorCode::protocol,
                 "positions of rank " + std::to_string(root_) + ": invalid or outside the model"};
  };
  BitReader in(message_);
  const std::size_t entries = in.get(32);
  const std::uint32_t code = in.get(32);
  const std::size_t count = exchange_.coding.shape->parameters();
  if (!in.fine() || entries > entries_of(exchange_)) return bad();
  if (code > static_cast<std::uint32_t>(PositionCode::varint)) return bad();
  if (!get_positions(in, static_cast<PositionCode>(code), entries, count, positions_)) return bad();
  return ok();
}

/// Sums a fixed number of elements that all ranks know. Elements beyond the selection are 0.
Status SharedIndex::begin_sum() {
  const std::size_t numbers = std::max<std::size_t>(entries_of(exchange_), transport_->world());
  shape_ = {exchange_.coding.shape->scalar, {numbers}, exchange_.coding.shape->buffers};
  mine_.assign(shape_.bytes(), std::byte{0});
  summed_.assign(shape_.bytes(), std::byte{0});
  const auto staged = exchange_.residual->staged().host_bytes();
  const std::size_t size = number_bytes();
  for (std::size_t i = 0; i < positions_.size(); ++i)
    std::memcpy(mine_.data() + i * size, staged.data() + positions_[i] * size, size);
  const double weight = exchange_.weights[me()];
  const std::size_t p = exchange_.coding.shape->parameters();
  if (weight > 0 && shape_.buffers > 0)
    scale_to(exchange_.mine.slice(p, shape_.buffers), weight, mine_.data() + numbers * size);
  exchange_.residual->sent_at(positions_, me() == root_ ? message_.size() : 0);
  alike_.assign(transport_->world(), 1.0);
  Exchange values = exchange_;
  values.weights = alike_;
  values.mine = view(mine_);
  values.agreed = view(summed_);
  values.coding.shape = &shape_;
  values.slot_bytes = numbers * size;
  values.residual = nullptr;
  return sum_->begin(*transport_, values);
}

void SharedIndex::spread_sum() {
  const auto agreed = exchange_.agreed.host_bytes();
  const std::size_t size = number_bytes();
  const std::size_t parameters = exchange_.coding.shape->parameters() * size;
  std::memset(agreed.data(), 0, parameters);
  for (std::size_t i = 0; i < positions_.size(); ++i)
    std::memcpy(agreed.data() + positions_[i] * size, summed_.data() + i * size, size);
  std::memcpy(agreed.data() + parameters, summed_.data() + shape_.tensors[0] * size, shape_.buffers * size);
}

Progress SharedIndex::poll() {
  if (step_ == Step::failed) return Progress::failed;
  if (step_ == Step::electing) {
    const Progress p = finish_all(*transport_, pending_);
    if (p == Progress::failed) return fail(transport_->error());
    if (p == Progress::pending) return p;
    if (auto elected = elect(); !elected) return fail(elected.error());
    begin_contributing();
  }
  if (step_ == Step::contributing) {
    const Progress p = finish_all(*transport_, pending_);
    if (p == Progress::failed) return fail(transport_->error());
    if (p == Progress::pending) return p;
    if (me() != root_)
      if (auto read = read_positions(); !read) return fail(read.error());
    if (auto begun = begin_sum(); !begun) return fail(begun.error());
    step_ = Step::summing;
  }
  if (step_ == Step::summing) {
    const Progress p = sum_->poll();
    if (p == Progress::failed) return fail(sum_->error());
    if (p == Progress::pending) return p;
    spread_sum();
    step_ = Step::done;
  }
  return Progress::done;
}

Progress SharedIndex::fail(Error error) {
  step_ = Step::failed;
  error_ = std::move(error);
  return Progress::failed;
}

}  // namespace

extern const AggregationEntry aggregation_shared_index;
const AggregationEntry aggregation_shared_index{
    .name = "shared_index",
    .help = "all-reduce of the elements at positions that one device selects (AR-Topk)",
    .make = []() -> std::unique_ptr<Aggregation> { return std::make_unique<SharedIndex>(); },
    .fits = &sums_entries,
    .keys = keys,
    .pattern = Pattern::chosen_by_one,
    .messages = 4};  // positions before a sum

}  // namespace rivulet::sync
