#include "runtime/train/injected_rows.h"

#include <algorithm>
#include <cmath>

#include "sync/coding/rows.h"
#include "sync/controllers/injection.h"

namespace rivulet::runtime {
namespace {

constexpr std::size_t bytes_held = std::size_t{1} * 1024 * 1024;

/// Copies row `at` of a view to row `to` of a vector.
template <class T>
void copy_row(std::span<const T> from, std::size_t at, std::vector<T>& into, std::size_t to,
              std::size_t width) {
  std::copy_n(from.data() + at * width, width, into.data() + to * width);
}

}  // namespace

InjectedRows::InjectedRows(sync::RowFormat format, std::size_t classes, std::uint64_t seed)
    : format_(std::move(format)), shape_(format_.shape), classes_(classes), rng_(seed) {}

std::size_t InjectedRows::rows_held(const RowShape& shape) noexcept {
  const std::size_t row = (shape.columns() + shape.targets) * sizeof(float);
  return std::clamp<std::size_t>(bytes_held / row, 1, sync::policy::injected_rows_max);
}

void InjectedRows::begin() {
  received_.clear();
  held_ = 0;
  offered_ = 0;
  next_ = {};
  owed_ = 0;
}

// Reservoir sampling (Vitter 1985, algorithm R).
void InjectedRows::offer(const BatchView& batch, std::size_t own) {
  const std::size_t most = rows_held(shape_);
  features_.resize(most * shape_.columns());
  targets_.resize(most * shape_.targets);
  for (std::size_t row = 0; row < std::min(own, batch.rows); ++row) {
    const std::uint64_t place = offered_++ < most ? held_++ : rng_.below(offered_);
    if (place >= most) continue;
    copy_row(batch.features, row, features_, place, shape_.columns());
    copy_row(batch.targets, row, targets_, place, shape_.targets);
  }
}

/// Uniform random permutation.
void InjectedRows::shuffle() {
  const auto swap_rows = [](std::vector<float>& all, std::size_t a, std::size_t b, std::size_t width) {
    std::swap_ranges(all.data() + a * width, all.data() + (a + 1) * width, all.data() + b * width);
  };
  for (std::size_t row = 0; row + 1 < held_; ++row) {
    const std::size_t other = row + rng_.below(held_ - row);
    if (other == row) continue;
    swap_rows(features_, row, other, shape_.columns());
    swap_rows(targets_, row, other, shape_.targets);
  }
}

std::vector<std::vector<std::byte>> InjectedRows::draw(std::size_t rows, std::uint32_t world,
                                                       std::uint32_t me) {
  std::vector<std::vector<std::byte>> for_rank(world);
  shuffle();
  rows = std::min(rows, held_);
  std::size_t at = 0;
  for (std::uint32_t rank = 0; rank < world && rows > 0; ++rank) {
    if (rank == me) continue;
    if (at + rows > held_) at = 0;  // too few rows for different ones each
    for_rank[rank] = sync::encode_rows(
        {.features = std::span(features_).subspan(at * shape_.columns(), rows * shape_.columns()),
         .targets = std::span(targets_).subspan(at * shape_.targets, rows * shape_.targets),
         .rows = rows,
         .tags = {}},
        format_, sync::injected_bytes_max(shape_));
    at += rows;
  }
  held_ = 0;
  offered_ = 0;
  return for_rank;
}

Status InjectedRows::receive(std::span<const sync::ParcelExchange::Received> parcels,
                             const sync::ViewSpec& view) {
  std::vector<sync::RowBlock> came;
  std::size_t total = 0;
  for (const auto& [peer, bytes] : parcels) {
    if (bytes.empty() || total + rows_held(shape_) > peers_held * rows_held(shape_)) continue;
    auto rows = sync::decode_rows(bytes, format_, rows_held(shape_));
    if (rows && !are_targets(rows.value().targets))
      rows = Error{ErrorCode::protocol, "injected rows: a label is not one of the classes"};
    if (!rows) return Error{rows.error().code, "from " + view.members[peer] + ": " + rows.error().message};
    total += rows.value().rows;
    came.push_back(std::move(rows).value());
  }
  if (came.empty()) return ok();
  received_ = std::move(came);
  next_ = {};
  return ok();
}

bool InjectedRows::are_targets(std::span<const float> targets) const {
  return classes_ == 0 || std::ranges::all_of(targets, [&](float t) {
           return t >= 0 && t < static_cast<float>(classes_) && t == std::floor(t);
         });
}

/// Takes the first rows of all peers, then the second rows of peers that have one, and so on; then repeats.
void InjectedRows::inject_next(buffer::Batch& batch) {
  while (next_.row >= received_[next_.peer].rows) move_on();
  const sync::RowBlock& from = received_[next_.peer];
  batch.add_injected(std::span(from.features).subspan(next_.row * shape_.columns(), shape_.columns()),
                     std::span(from.targets).subspan(next_.row * shape_.targets, shape_.targets));
  move_on();
}

void InjectedRows::move_on() {
  if (++next_.peer < received_.size()) return;
  next_.peer = 0;
  const auto most = std::ranges::max(received_, {}, &sync::RowBlock::rows).rows;
  next_.row = (next_.row + 1) % most;
}

std::size_t InjectedRows::inject(buffer::Batch& batch, double for_each_own) {
  if (received_.empty() || for_each_own <= 0 || batch.own_rows() == 0) return 0;
  const std::size_t room = batch.rows_max() - batch.rows();
  owed_ = std::min(owed_ + for_each_own * static_cast<double>(batch.own_rows()),
                   static_cast<double>(batch.rows_max()));
  const auto lent = std::min(static_cast<std::size_t>(owed_), room);
  owed_ -= static_cast<double>(lent);
  for (std::size_t i = 0; i < lent; ++i) inject_next(batch);
  return lent;
}

}  // namespace rivulet::runtime
