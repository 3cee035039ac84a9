#include "buffer/batch.h"

#include <algorithm>

#include "core/check.h"

namespace rivulet::buffer {

Batch::Batch(std::span<float> features, std::span<float> targets, const RowShape& shape, std::size_t rows_max)
    : features_(features), targets_(targets), shape_(shape), rows_max_(rows_max) {
  RIVULET_CHECK(features.size() >= rows_max * shape.columns(), "memory for features is too small");
  RIVULET_CHECK(targets.size() >= rows_max * shape.targets, "memory for targets is too small");
  slots_.reserve(rows_max);
  tags_.reserve(rows_max);
}

std::size_t Batch::fill(RowBuffer& buffer, std::size_t n) {
  RIVULET_CHECK(buffer.shape() == shape_, "rows of another shape");
  used_ -= copies_;
  copies_ = 0;
  RIVULET_CHECK(used_ == own_ && lent_ == 0, "own rows come before guests and loans");
  const std::size_t taken = buffer.take(std::min(n, rows_max_ - used_), slots_);
  for (std::size_t i = own_; i < own_ + taken; ++i) {
    const SlotIndex slot = slots_[i];
    // Of pointers: between spans GCC 12 copies number by number.
    std::copy_n(buffer.features(slot).data(), shape_.columns(), features_.data() + i * shape_.columns());
    std::copy_n(buffer.targets(slot).data(), shape_.targets, targets_.data() + i * shape_.targets);
    tags_.push_back(buffer.tag(slot));
  }
  own_ += taken;
  used_ += taken;
  return taken;
}

void Batch::add_guest(std::span<const float> features, std::span<const float> targets, const RowTag& tag) {
  RIVULET_CHECK(copies_ == 0, "copies come after all others");
  put(features, targets);
  tags_.push_back(tag);
}

void Batch::add_copy(std::span<const float> features, std::span<const float> targets) {
  put(features, targets);
  ++copies_;
}

void Batch::put(std::span<const float> features, std::span<const float> targets) {
  RIVULET_CHECK(lent_ == 0, "a batch lends rows or hosts them, not both: its rows must lie together");
  RIVULET_CHECK(used_ < rows_max_, "more guests than room");
  RIVULET_CHECK(features.size() == shape_.columns() && targets.size() == shape_.targets,
                "guest of another shape");
  std::ranges::copy(features, features_.begin() + static_cast<std::ptrdiff_t>(used_ * shape_.columns()));
  std::ranges::copy(targets, targets_.begin() + static_cast<std::ptrdiff_t>(used_ * shape_.targets));
  ++used_;
}

BatchView Batch::send_rows(std::size_t n) {
  RIVULET_CHECK(used_ == own_, "a batch lends rows or hosts them, not both: its rows must lie together");
  RIVULET_CHECK(n <= own_ - lent_, "more rows lent than held");
  lent_ += n;
  const std::size_t first = own_ - lent_;
  return {features_.subspan(first * shape_.columns(), n * shape_.columns()),
          targets_.subspan(first * shape_.targets, n * shape_.targets), n,
          std::span<const RowTag>(tags_).subspan(first, n)};
}

void Batch::take_back_lent() {
  lent_ = 0;
}

BatchView Batch::view() const noexcept {
  const std::size_t n = rows();
  return {features_.first(n * shape_.columns()), targets_.first(n * shape_.targets), n,
          std::span<const RowTag>(tags_).first(counted_rows())};
}

std::size_t Batch::rows() const noexcept {
  return used_ - lent_;
}
std::size_t Batch::own_rows() const noexcept {
  return own_;
}

std::span<const RowTag> Batch::own_tags() const noexcept {
  return std::span<const RowTag>(tags_).first(own_);
}

void Batch::settle(RowBuffer& buffer) {
  buffer.release(slots_);
  clear();
}

void Batch::put_back(RowBuffer& buffer) {
  buffer.put_back(slots_);
  clear();
}

void Batch::clear() noexcept {
  used_ = own_ = lent_ = copies_ = 0;
  slots_.clear();
  tags_.clear();
}

}  // namespace rivulet::buffer
