#pragma once
#include <optional>
#include <string_view>

namespace rivulet::sync::policy {

/// Bytes that a device may send to synchronize: a share of its group's record bytes, or bytes per second.
struct Budget {
  double of_stream = 0;         ///< 0: the budget is bytes per second
  double bytes_per_second = 0;  ///< 0: the budget is a share of the stream
  /// Hard budgets include all headers, as bytes at the network interface. A budget of the whole stream or
  /// more is soft: it only keeps synchronization cheaper than the rows, so an estimate suffices.
  [[nodiscard]] bool is_hard() const { return of_stream < 1; }
  bool operator==(const Budget&) const = default;
};

/// Parses "0.1 of stream", "50 kB/s" or "2 GB/month" (of 30 days). Rejects values that are not positive.
std::optional<Budget> budget_of(std::string_view text);

}  // namespace rivulet::sync::policy
