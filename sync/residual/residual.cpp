#include "sync/residual/residual.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/check.h"
#include "sync/coding/norm.h"
#include "sync/coding/weighted_numbers.h"

namespace rivulet::sync {
namespace {

void clear_non_finite(const GradientView& numbers) {
  const auto each = [](auto all) {
    for (auto& x : all)
      if (!std::isfinite(x)) x = 0;
  };
  if (numbers.scalar == Scalar::f32)
    each(numbers.as<float>());
  else
    each(numbers.as<double>());
}

}  // namespace

GradientView Residual::view(std::vector<std::byte>& memory) const {
  memory.resize(shape_.bytes());
  return {.data = memory.data(), .count = shape_.count(), .scalar = shape_.scalar};
}

GradientView Residual::stage(const GradientView& mine, double weight, bool marks) {
  const GradientView all = view(staged_);
  guess_ = {};
  marks_ = marks;
  if (marks) std::ranges::fill(view(left_).host_bytes(), std::byte{0});
  if (empty())
    std::memset(all.data, 0, all.bytes());
  else
    std::memcpy(all.data, kept_.data(), all.bytes());
  is_staged_ = true;
  const std::size_t p = shape_.parameters();
  const auto buffers = all.slice(p, shape_.buffers).host_bytes();
  if (weight > 0) {
    add(mine, weight);
    std::ranges::copy(mine.slice(p, shape_.buffers).host_bytes(), buffers.begin());
  } else {
    std::ranges::fill(buffers, std::byte{0});
  }
  return all;
}

void Residual::reweigh(const GradientView& mine, double weight) {
  add(mine, weight - guess_.weight);
  guess_ = {};
}

void Residual::add(const GradientView& mine, double weight) {
  RIVULET_CHECK(is_staged_, "nothing is staged");
  RIVULET_CHECK(mine.count == shape_.count() && mine.scalar == shape_.scalar,
                "contribution and residual differ in shape");
  const std::size_t p = shape_.parameters();
  if (weight != 0) add_scaled(mine.slice(0, p).host_bytes().data(), weight, view(staged_).slice(0, p));
}

void Residual::become(bool of_deltas) {
  if (of_deltas == of_deltas_) return;
  RIVULET_CHECK(!is_staged_, "the unit cannot change while a contribution is staged");
  of_deltas_ = of_deltas;
  if (empty()) return;
  const double factor = of_deltas ? delta_per_gradient_ : 1 / delta_per_gradient_;
  const GradientView kept = view(kept_).slice(0, shape_.parameters());
  scale_to(kept, factor, kept.data);
  measure();
}

GradientView Residual::staged() {
  RIVULET_CHECK(is_staged_, "nothing is staged");
  return view(staged_).slice(0, shape_.parameters());
}

void Residual::sent(const CompressorEntry& compressor, const Coding& coding, std::span<const std::byte> slot,
                    std::size_t begin) {
  RIVULET_CHECK(is_staged_, "nothing is staged");
  const std::size_t count = coding.shape != nullptr ? coding.shape->parameters() : shape_.parameters();
  const auto take = [&](std::vector<std::byte>& from) {
    const auto taken = compressor.decode_add(coding, slot, -1.0, view(from).slice(begin, count));
    RIVULET_CHECK(taken, "a compressor cannot decode its own slot");
  };
  take(staged_);
  if (marks_) take(left_);
  const std::uint64_t values = compressor.value_bytes ? compressor.value_bytes(coding, slot) : slot.size();
  slot_bytes_.values += values;
  slot_bytes_.positions += slot.size() - values;
}

GradientView Residual::left() {
  return marks_ && is_staged_ ? view(left_).slice(0, shape_.parameters()) : GradientView{};
}

void Residual::sent_at(std::span<const std::uint32_t> positions, std::uint64_t position_bytes) {
  RIVULET_CHECK(is_staged_, "nothing is staged");
  const std::size_t size = bytes_of(shape_.scalar);
  for (const std::uint32_t at : positions) {
    if (marks_) std::memcpy(left_.data() + at * size, staged_.data() + at * size, size);
    std::memset(staged_.data() + at * size, 0, size);
  }
  slot_bytes_.values += positions.size() * size;
  slot_bytes_.positions += position_bytes;
}

void Residual::sent(const GradientView& numbers, std::uint64_t bytes) {
  RIVULET_CHECK(is_staged_, "nothing is staged");
  const auto take = [&](std::vector<std::byte>& from, double weight) {
    add_scaled(numbers.host_bytes().data(), weight, view(from).slice(0, shape_.parameters()));
  };
  take(staged_, -1);
  if (marks_) take(left_, 1);
  slot_bytes_.values += bytes;
}

void Residual::sent_all() {
  RIVULET_CHECK(is_staged_, "nothing is staged");
  const GradientView parameters = view(staged_).slice(0, shape_.parameters());
  std::memset(parameters.data, 0, parameters.bytes());
}

void Residual::commit() {
  if (!is_staged_) return;
  is_staged_ = false;
  kept_.swap(staged_);
  measure();
}

void Residual::measure() {
  const GradientView kept = view(kept_).slice(0, shape_.parameters());
  norm_ = norm_of(kept);
  if (std::isfinite(norm_)) return;
  clear_non_finite(kept);
  const double norm = norm_of(kept);  // still non-finite if it exceeds a double
  norm_ = std::isfinite(norm) ? norm : 0;
}

double Residual::resolve(const Stamp& target, std::uint64_t rows, const GradientView& mine) {
  double lost = 0;
  const bool next = target == Stamp{stamp_.lineage, stamp_.step + 1};
  const bool trained = rows != rows_;
  if (next && trained && is_staged_) {
    if (guess_.own_rows > 0 && mine.count > 0)
      reweigh(mine, static_cast<double>(guess_.own_rows) / static_cast<double>(rows - rows_));
    commit();
  } else if (target != stamp_ && !(next && !trained)) {
    lost = norm_;
    norm_ = 0;
  }
  drop();
  follow(target, rows);
  return lost;
}

void Residual::restore(const Stamp& stamp, std::uint64_t rows, std::span<const std::byte> numbers,
                       bool of_deltas) {
  const GradientView kept = view(kept_).slice(0, shape_.parameters());
  RIVULET_CHECK(numbers.size() == kept.bytes(), "the residual belongs to a different model");
  std::ranges::copy(numbers, kept.data);
  of_deltas_ = of_deltas;
  measure();
  follow(stamp, rows);
  drop();
}

GradientView Residual::kept() {
  if (empty()) return {.scalar = shape_.scalar};
  return view(kept_).slice(0, shape_.parameters());
}

std::span<const std::byte> Residual::numbers() const noexcept {
  if (empty()) return {};
  return std::span(kept_).first(shape_.parameters() * bytes_of(shape_.scalar));
}

}  // namespace rivulet::sync
