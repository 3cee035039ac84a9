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
  RIVULET_CHECK(buffer.shape() == shape_, "rows have the wrong shape");
  injected_ = 0;
  const std::size_t taken = buffer.take(std::min(n, rows_max_ - own_), slots_);
  for (std::size_t i = own_; i < own_ + taken; ++i) {
    const SlotIndex slot = slots_[i];
    // Pointers, because GCC 12 copies element by element between spans.
    std::copy_n(buffer.features(slot).data(), shape_.columns(), features_.data() + i * shape_.columns());
    std::copy_n(buffer.targets(slot).data(), shape_.targets, targets_.data() + i * shape_.targets);
    tags_.push_back(buffer.tag(slot));
  }
  own_ += taken;
  return taken;
}

void Batch::add_injected(std::span<const float> features, std::span<const float> targets) {
  RIVULET_CHECK(rows() < rows_max_, "more injected rows than capacity");
  RIVULET_CHECK(features.size() == shape_.columns() && targets.size() == shape_.targets,
                "an injected row with the wrong shape");
  std::ranges::copy(features, features_.begin() + static_cast<std::ptrdiff_t>(rows() * shape_.columns()));
  std::ranges::copy(targets, targets_.begin() + static_cast<std::ptrdiff_t>(rows() * shape_.targets));
  ++injected_;
}

BatchView Batch::view() const noexcept {
  const std::size_t n = rows();
  return {features_.first(n * shape_.columns()), targets_.first(n * shape_.targets), n, tags_};
}

void Batch::release(RowBuffer& buffer) {
  buffer.release(slots_);
  clear();
}

void Batch::put_back(RowBuffer& buffer) {
  buffer.put_back(slots_);
  clear();
}

void Batch::clear() noexcept {
  own_ = injected_ = 0;
  slots_.clear();
  tags_.clear();
}

}  // namespace rivulet::buffer
