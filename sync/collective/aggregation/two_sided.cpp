#include <algorithm>
#include <cstring>
#include <vector>

#include "core/check.h"
#include "sync/coding/weighted_numbers.h"
#include "sync/collective/aggregation.h"

namespace rivulet::sync {
namespace {

// Compresses both ways (after Ok-Topk, Li and Hoefler 2022, and STC, Sattler et al. 2019). Rank j owns slice
// j of the parameters:
//
//   1. each rank sends each owner a slot of its slice, which leaves the rank's residual;
//   2. the owner adds the slots to its own staged slice, in rank order, and sends a slot of the sum to all.
//      The slot leaves the owner's residual: the owner keeps what was not sent, in the same units.
//
// Each element is summed by one rank, so the bits agree. Sends 2 (N - 1) / N of a slot, in two steps; gather
// sends N - 1 slots in one. Buffers are sent the same way, uncompressed.

/// A part of a contribution: parameters [begin, begin + shape.parameters()), buffers [buffer_begin, ...).
struct Slice {
  std::size_t begin = 0;
  std::size_t buffer_begin = 0;
  ContributionShape shape;
  std::uint64_t slot_bytes = 0;
  [[nodiscard]] std::size_t payload_bytes() const { return slot_bytes + shape.buffer_bytes(); }
};

/// Cuts all elements into equal parts, and also at tensor boundaries, because tensors have separate scales.
std::vector<Slice> slices_of(const Exchange& exchange, std::uint32_t world) {
  const ContributionShape& all = *exchange.coding.shape;
  const std::size_t count = all.parameters();
  std::vector<Slice> slices(world);
  for (std::uint32_t j = 0; j < world; ++j) {
    Slice& slice = slices[j];
    slice.begin = count * j / world;
    const std::size_t end = count * (j + 1) / world;
    slice.shape.scalar = all.scalar;
    std::size_t at = 0;
    for (const std::size_t tensor : all.tensors) {
      const std::size_t from = std::max(at, slice.begin);
      const std::size_t to = std::min(at + tensor, end);
      if (from < to) slice.shape.tensors.push_back(to - from);
      at += tensor;
    }
    slice.buffer_begin = all.buffers * j / world;
    slice.shape.buffers = all.buffers * (j + 1) / world - slice.buffer_begin;
    if (end > slice.begin)
      slice.slot_bytes =
          exchange.compressor->slot_bytes(slice.shape, exchange.coding.keep_ratio, *exchange.coding.settings);
  }
  return slices;
}

class TwoSided final : public Aggregation {
 public:
  Status begin(Transport& transport, const Exchange& exchange) override;
  Progress poll() override;
  bool wait() override { return pending_.empty() || transport_->wait(pending_.back()); }
  [[nodiscard]] const Error& error() const override { return error_; }

 private:
  enum class Step : std::uint8_t { gathering, spreading, done, failed };

  [[nodiscard]] std::uint32_t me() const { return transport_->rank(); }
  template <class F>
  void for_each_peer(F f) {
    for (std::uint32_t k = 1; k < transport_->world(); ++k) f((me() + k) % transport_->world());
  }
  [[nodiscard]] Coding coding_of(const Slice& slice) const {
    Coding coding = exchange_.coding;
    coding.shape = &slice.shape;
    return coding;
  }
  [[nodiscard]] GradientView staged(const Slice& slice) const {
    return exchange_.residual->staged().slice(slice.begin, slice.shape.parameters());
  }
  [[nodiscard]] GradientView agreed(const Slice& slice) const {
    return exchange_.agreed.slice(slice.begin, slice.shape.parameters());
  }
  [[nodiscard]] GradientView agreed_buffers(const Slice& slice) const {
    return exchange_.agreed.slice(exchange_.coding.shape->parameters() + slice.buffer_begin,
                                  slice.shape.buffers);
  }
  void take_out(const Slice& slice, std::span<std::byte> slot);
  void send_parts();
  Status add_parts();
  void spread();
  Status read_sums();
  Progress fail(Error error);

  Transport* transport_ = nullptr;
  Exchange exchange_;
  std::vector<Slice> slices_;                 ///< by owner
  std::vector<std::vector<std::byte>> out_;   ///< slots of step 1, by owner
  std::vector<std::vector<std::byte>> in_;    ///< slots of step 1, by sender
  std::vector<std::vector<std::byte>> sums_;  ///< slots of step 2, by owner
  std::vector<Ticket> pending_;               ///< operations of this step
  std::vector<Ticket> later_;                 ///< receives of step 2
  Step step_ = Step::done;
  Error error_;
};

Status TwoSided::begin(Transport& transport, const Exchange& exchange) {
  RIVULET_CHECK(exchange.weights.size() == transport.world(), "needs one weight per rank");
  RIVULET_CHECK(exchange.residual != nullptr, "this collective needs a residual");
  transport_ = &transport;
  exchange_ = exchange;
  slices_ = slices_of(exchange, transport.world());
  out_.resize(transport.world());
  in_.resize(transport.world());
  sums_.resize(transport.world());
  pending_.clear();
  later_.clear();
  for_each_peer([&](std::uint32_t peer) {
    in_[peer].resize(slices_[me()].payload_bytes());
    sums_[peer].resize(slices_[peer].payload_bytes());
    pending_.push_back(transport.receive(peer, Lane::sum, in_[peer]));
    later_.push_back(transport.receive_ahead(peer, Lane::phase, sums_[peer]));
  });
  send_parts();
  step_ = Step::gathering;
  return ok();
}

/// Encodes the largest elements of a slice and removes them from the residual.
void TwoSided::take_out(const Slice& slice, std::span<std::byte> slot) {
  if (slot.empty()) return;
  const Coding coding = coding_of(slice);
  exchange_.compressor->encode(coding, staged(slice), slot);
  exchange_.residual->sent(*exchange_.compressor, coding, slot, slice.begin);
}

void TwoSided::send_parts() {
  const double weight = exchange_.weights[me()];
  const std::size_t p = exchange_.coding.shape->parameters();
  for_each_peer([&](std::uint32_t owner) {
    const Slice& slice = slices_[owner];
    auto& bytes = out_[owner];
    bytes.assign(slice.payload_bytes(), std::byte{0});
    take_out(slice, std::span(bytes).first(slice.slot_bytes));
    if (slice.shape.buffers > 0 && weight > 0)
      scale_to(exchange_.mine.slice(p + slice.buffer_begin, slice.shape.buffers), weight,
               bytes.data() + slice.slot_bytes);
    pending_.push_back(transport_->send(owner, Lane::sum, bytes));
  });
}

/// Adds the received slots to the staged slice of this rank.
Status TwoSided::add_parts() {
  const Slice& slice = slices_[me()];
  const double weight = exchange_.weights[me()];
  const GradientView buffers = agreed_buffers(slice);
  const std::size_t p = exchange_.coding.shape->parameters();
  if (slice.shape.buffers > 0) {
    std::memset(buffers.data, 0, buffers.bytes());
    if (weight > 0)
      scale_to(exchange_.mine.slice(p + slice.buffer_begin, slice.shape.buffers), weight, buffers.data);
  }
  for (std::uint32_t rank = 0; rank < transport_->world(); ++rank) {
    if (rank == me()) continue;
    const std::span<const std::byte> bytes(in_[rank]);
    if (slice.slot_bytes > 0) {
      auto added = exchange_.compressor->decode_add(coding_of(slice), bytes.first(slice.slot_bytes), 1.0,
                                                    staged(slice));
      if (!added)
        return Error{added.error().code,
                     "slot of rank " + std::to_string(rank) + ": " + added.error().message};
    }
    if (slice.shape.buffers > 0) add_from(bytes.data() + slice.slot_bytes, buffers);
  }
  return ok();
}

void TwoSided::spread() {
  const Slice& slice = slices_[me()];
  auto& bytes = sums_[me()];
  bytes.resize(slice.payload_bytes());
  take_out(slice, std::span(bytes).first(slice.slot_bytes));
  const auto buffers = agreed_buffers(slice).host_bytes();
  std::ranges::copy(buffers, bytes.begin() + static_cast<std::ptrdiff_t>(slice.slot_bytes));
  pending_ = later_;
  for (const Ticket ticket : later_) transport_->promote(ticket);
  for_each_peer([&](std::uint32_t peer) { pending_.push_back(transport_->send(peer, Lane::phase, bytes)); });
}

Status TwoSided::read_sums() {
  std::memset(exchange_.agreed.data, 0,
              exchange_.coding.shape->parameters() * bytes_of(exchange_.agreed.scalar));
  for (std::uint32_t owner = 0; owner < transport_->world(); ++owner) {
    const Slice& slice = slices_[owner];
    const std::span<const std::byte> bytes(sums_[owner]);
    if (slice.slot_bytes > 0) {
      auto added = exchange_.compressor->decode_add(coding_of(slice), bytes.first(slice.slot_bytes), 1.0,
                                                    agreed(slice));
      if (!added)
        return Error{added.error().code,
                     "sum of rank " + std::to_string(owner) + ": " + added.error().message};
    }
    std::ranges::copy(bytes.subspan(slice.slot_bytes), agreed_buffers(slice).host_bytes().begin());
  }
  return ok();
}

Progress TwoSided::poll() {
  if (step_ == Step::failed) return Progress::failed;
  while (step_ != Step::done) {
    const Progress p = finish_all(*transport_, pending_);
    if (p == Progress::failed) return fail(transport_->error());
    if (p == Progress::pending) return p;
    const bool gathered = step_ == Step::gathering;
    if (auto used = gathered ? add_parts() : read_sums(); !used) return fail(used.error());
    if (gathered) spread();
    step_ = gathered ? Step::spreading : Step::done;
  }
  return Progress::done;
}

Progress TwoSided::fail(Error error) {
  step_ = Step::failed;
  error_ = std::move(error);
  return Progress::failed;
}

}  // namespace

extern const AggregationEntry aggregation_two_sided;
const AggregationEntry aggregation_two_sided{
    .name = "two_sided",
    .help = "every device sums one slice; contributions and sums are sent compressed",
    .make = []() -> std::unique_ptr<Aggregation> { return std::make_unique<TwoSided>(); },
    .fits = &sums_entries,
    .worth_saving = 0};

}  // namespace rivulet::sync
