#include "runtime/round_update.h"

#include <algorithm>
#include <cmath>

#include "runtime/announced.h"

namespace rivulet::runtime {
namespace {

template <class T>
bool finite(std::span<const T> values) {
  return std::all_of(values.begin(), values.end(), [](T v) { return std::isfinite(v); });
}

}  // namespace

bool all_finite(const GradientView& numbers) {
  return numbers.scalar == Scalar::f32 ? finite<float>(numbers.as<float>())
                                       : finite<double>(numbers.as<double>());
}

void fold_round(AgreedState& state, const sync::FactsTable& table, std::uint64_t view, bool trained) {
  state.stamp = {view, state.stamp.step + 1};
  for (std::size_t rank = 0; rank < table.size(); ++rank) {
    const Announced announced(table, rank);
    if (trained) {
      for (const RowInterval& rows : announced.intervals()) fold_interval(state, rows, announced.runs());
      state.rows += table.facts[rank].rows + table.facts[rank].rows_since_sync;
    } else {
      buffer::Account account = announced.account();
      buffer::drop_trained(account);
      for (const RowInterval& rows : account.intervals) fold_interval(state, rows, account.runs);
    }
  }
}

}  // namespace rivulet::runtime
