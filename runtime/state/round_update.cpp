#include "runtime/state/round_update.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/vector_code.h"
#include "devices/columns.h"
#include "runtime/state/announced.h"

namespace rivulet::runtime {
namespace {

/// Infinities and NaNs have all exponent bits set. Checks every value: faster than stopping at a match.
RIVULET_VECTOR_CODE bool finite(const float* values, std::size_t count) {
  constexpr std::uint32_t exponent = 0x7f800000;
  std::uint32_t found = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, values + i, sizeof bits);
    found |= static_cast<std::uint32_t>((bits & exponent) == exponent);
  }
  return found == 0;
}

bool finite(std::span<const double> values) {
  return std::ranges::all_of(values, [](double v) { return std::isfinite(v); });
}

}  // namespace

bool all_finite(const GradientView& numbers) {
  return numbers.scalar == Scalar::f32 ? finite(numbers.as<float>().data(), numbers.count)
                                       : finite(numbers.as<double>());
}

bool fits_in_average(const GradientView& numbers) {
  constexpr double most = 0x1p120;
  const auto fit = [&](auto all) {
    return std::ranges::all_of(all, [&](auto x) { return std::abs(x) <= most; });
  };
  return numbers.scalar == Scalar::f32 ? fit(numbers.as<float>()) : fit(numbers.as<double>());
}

void fold_round(AgreedState& state, const sync::FactsTable& table, std::uint64_t view, bool trained) {
  state.stamp = {view, state.stamp.step + 1};
  for (std::size_t rank = 0; rank < table.size(); ++rank) {
    const Announced announced(table, rank);
    if (trained) {
      for (const RowInterval& rows : announced.intervals()) fold_interval(state, rows, announced.runs());
      state.rows += table.facts[rank].rows;
    } else {
      buffer::Account account = announced.account();
      buffer::drop_trained(account);
      for (const RowInterval& rows : account.intervals) fold_interval(state, rows, account.runs);
    }
  }
}

void follow_columns(sync::Residual& residual, std::span<const devices::Column> before,
                    const devices::ModelState& now) {
  const auto& layout = now.layout();
  const auto by = devices::rescaling_between(before, now.columns(), layout.normalized);
  if (!by.moves) return;
  residual.rewrite(
      [&](const GradientView& kept) { devices::rescale(kept, devices::ArrayKind::delta, by, layout); });
}

}  // namespace rivulet::runtime
