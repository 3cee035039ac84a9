#include "stream/decoder/last_values.h"

#include <algorithm>
#include <limits>

namespace rivulet::stream {
namespace {

constexpr std::size_t partitions_max = 1024;
constexpr float unknown = std::numeric_limits<float>::quiet_NaN();

}  // namespace

void LastValues::enter(const Record& record) {
  now_ = nullptr;
  const auto found = partitions_.find(record.partition);
  if (found == partitions_.end() && partitions_.size() >= partitions_max) return;
  now_ = found == partitions_.end() ? &partitions_[record.partition] : &found->second;
  if (record.offset <= now_->offset || now_->values.empty()) now_->values.assign(columns_, unknown);
  now_->offset = record.offset;
}

float LastValues::of(std::size_t column) const noexcept {
  return now_ == nullptr ? unknown : now_->values[column];
}

void LastValues::row(std::span<const float> features) noexcept {
  if (now_ != nullptr) std::ranges::copy(features, now_->values.begin());
}

}  // namespace rivulet::stream
