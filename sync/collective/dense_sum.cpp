#include "sync/collective/dense_sum.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "sync/coding/weighted_numbers.h"

namespace rivulet::sync {
namespace {

/// Elements [begin, begin + count) of the vector.
struct Range {
  std::size_t begin = 0;
  std::size_t count = 0;
};

/// One step of a schedule: sends one range to a peer, and receives one to add or to store.
struct Phase {
  std::uint32_t to = 0;
  Range give;
  std::uint32_t from = 0;
  Range take;
  bool add = false;
};

constexpr std::size_t ring_from_bytes = std::size_t{1024} * 1024;

/// For 2 ranks: both send and add the complete vector. a + b = b + a in floating point, too, so the bits
/// agree.
std::vector<Phase> direct_schedule(std::uint32_t rank, std::size_t count) {
  const std::uint32_t peer = 1 - rank;
  return {{peer, {0, count}, peer, {0, count}, true}};
}

/// For powers of two: log2(N) halvings, after which each rank owns the sum of its part, then doublings back.
/// 2 log2(N) steps, sends 2 (N-1)/N * size. Each part is summed on one rank only, so the bits agree.
std::vector<Phase> halving_schedule(std::uint32_t rank, std::uint32_t world, std::size_t count) {
  std::vector<Phase> down;
  Range own{0, count};
  for (std::uint32_t distance = world / 2; distance > 0; distance /= 2) {
    const std::uint32_t peer = rank ^ distance;
    const std::size_t half = own.count / 2;
    const Range low{own.begin, half};
    const Range high{own.begin + half, own.count - half};
    const bool upper = (rank & distance) != 0;
    own = upper ? high : low;
    down.push_back({peer, upper ? low : high, peer, own, true});
  }
  std::vector<Phase> all = down;
  for (auto it = down.rbegin(); it != down.rend(); ++it)
    all.push_back({it->to, it->take, it->from, it->give, false});
  return all;
}

/// For any N: each part passes all ranks once to collect the sum, and once more to distribute it. 2 (N-1)
/// steps, sends 2 (N-1)/N * size. Each part is summed in one order, so the bits agree.
std::vector<Phase> ring_schedule(std::uint32_t rank, std::uint32_t world, std::size_t count) {
  const std::size_t part = (count + world - 1) / world;
  const auto range_of = [&](std::uint32_t index) {
    const std::size_t begin = std::min(count, part * (index % world));
    return Range{begin, std::min(count, begin + part) - begin};
  };
  const std::uint32_t right = (rank + 1) % world;
  const std::uint32_t left = (rank + world - 1) % world;
  std::vector<Phase> all;
  for (std::uint32_t k = 0; k + 1 < world; ++k) {
    all.push_back({right, range_of(rank + world - k), left, range_of(rank + 2 * world - k - 1), true});
  }
  for (std::uint32_t k = 0; k + 1 < world; ++k) {
    all.push_back({right, range_of(rank + 1 + world - k), left, range_of(rank + world - k), false});
  }
  return all;
}

std::vector<Phase> schedule_for(SumSchedule how, std::uint32_t rank, std::uint32_t world,
                                const GradientView& numbers) {
  if (world == 1) return {};
  if (world == 2) return direct_schedule(rank, numbers.count);
  const bool halves = how == SumSchedule::halving_doubling ||
                      (how == SumSchedule::by_size && numbers.bytes() < ring_from_bytes);
  if (halves && std::has_single_bit(world)) return halving_schedule(rank, world, numbers.count);
  return ring_schedule(rank, world, numbers.count);
}

/// The dense sum in place: works on `agreed`, reads `mine` once.
class Sum final : public Aggregation {
 public:
  explicit Sum(SumSchedule how) : how_(how) {}
  Status begin(Transport& transport, const Exchange& exchange) override;
  Progress poll() override;
  bool wait() override {
    const Ticket received = received_[current_];
    return transport_->wait(transport_->poll(received) == Progress::done ? sent_ : received);
  }
  const Error& error() const override { return error_; }

 private:
  void load_mine(const Exchange& exchange);
  void post_reduce_receives();
  void post_phase();
  Progress finish_phase();
  void add_received(const Phase& phase, std::size_t offset) const;
  std::span<std::byte> agreed_bytes(Range range) const {
    return agreed_.slice(range.begin, range.count).host_bytes();
  }

  const SumSchedule how_;
  Transport* transport_ = nullptr;
  GradientView agreed_;
  std::vector<Phase> phases_;
  std::size_t current_ = 0;
  Ticket sent_;
  std::vector<Ticket> received_;     ///< by phase
  std::vector<std::size_t> offset_;  ///< by phase: offset in scratch_ of a range to be added
  std::vector<std::byte> scratch_;   ///< at most the vector's size; reused each round
  bool failed_ = false;
  Error error_;
};

Status Sum::begin(Transport& transport, const Exchange& exchange) {
  RIVULET_CHECK(exchange.weights.size() == transport.world(), "needs one weight per rank");
  transport_ = &transport;
  agreed_ = exchange.agreed;
  failed_ = false;
  current_ = 0;
  load_mine(exchange);
  phases_ = schedule_for(how_, transport.rank(), transport.world(), agreed_);
  post_reduce_receives();
  if (!phases_.empty()) post_phase();
  return ok();
}

void Sum::load_mine(const Exchange& exchange) {
  RIVULET_CHECK(exchange.payload_bytes() == exchange.agreed.bytes(), "a dense sum needs all elements");
  if (!exchange.sends(transport_->rank())) {
    std::memset(agreed_.host_bytes().data(), 0, agreed_.bytes());
    return;
  }
  RIVULET_CHECK(exchange.mine.count == agreed_.count && exchange.mine.scalar == agreed_.scalar,
                "contribution and result differ in shape");
  const double weight = exchange.weights[transport_->rank()];
  const std::size_t p = exchange.coding.shape->parameters();
  scale_to(exchange.mine.slice(0, p), exchange.parameter_weight(transport_->rank()),
           agreed_.host_bytes().data());
  scale_to(exchange.mine.slice(p, agreed_.count - p), weight, agreed_.slice(p, agreed_.count - p).data);
  if (exchange.residual != nullptr) exchange.residual->sent_all();
}

/// Posts all receives of ranges to be added. They use the scratch, so all can be open before any send.
void Sum::post_reduce_receives() {
  received_.assign(phases_.size(), {});
  offset_.assign(phases_.size(), 0);
  std::size_t total = 0;
  for (std::size_t i = 0; i < phases_.size(); ++i) {
    if (!phases_[i].add) continue;
    offset_[i] = total;
    total += phases_[i].take.count * bytes_of(agreed_.scalar);
  }
  if (scratch_.size() < total) scratch_.resize(total);
  for (std::size_t i = 0; i < phases_.size(); ++i) {
    if (!phases_[i].add) continue;
    const auto bytes =
        std::span(scratch_).subspan(offset_[i], phases_[i].take.count * bytes_of(agreed_.scalar));
    received_[i] = transport_->receive(phases_[i].from, Lane::sum, bytes);
  }
}

void Sum::post_phase() {
  const Phase& phase = phases_[current_];
  if (!phase.add) received_[current_] = transport_->receive(phase.from, Lane::sum, agreed_bytes(phase.take));
  sent_ = transport_->send(phase.to, Lane::sum, agreed_bytes(phase.give));
}

Progress Sum::poll() {
  if (failed_) return Progress::failed;
  while (current_ < phases_.size()) {
    if (const Progress p = finish_phase(); p != Progress::done) return p;
    if (++current_ < phases_.size()) post_phase();
  }
  return Progress::done;
}

/// Waits for the send, too: the next step may add into the range being sent.
Progress Sum::finish_phase() {
  for (const Ticket ticket : {received_[current_], sent_}) {
    const Progress p = transport_->poll(ticket);
    if (p == Progress::failed) {
      failed_ = true;
      error_ = transport_->error();
    }
    if (p != Progress::done) return p;
  }
  if (phases_[current_].add) add_received(phases_[current_], offset_[current_]);
  return Progress::done;
}

void Sum::add_received(const Phase& phase, std::size_t offset) const {
  add_from(scratch_.data() + offset, agreed_.slice(phase.take.begin, phase.take.count));
}

}  // namespace

std::unique_ptr<Aggregation> make_dense_sum(SumSchedule how) {
  return std::make_unique<Sum>(how);
}

}  // namespace rivulet::sync
