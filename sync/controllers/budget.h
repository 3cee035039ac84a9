#pragma once
#include <optional>
#include <string_view>

namespace rivulet::sync::policy {

/// What a device may send in order to agree: a share of the bytes of its group's records, or a number of
/// bytes a second.
struct Budget {
  double of_stream = 0;         ///< 0: it is not of the stream
  double bytes_per_second = 0;  ///< 0: it is of the stream
  /// Counted as the interface counts. One of the whole stream or more only says that the rows shall not weigh
  /// less than agreeing about them: an estimate is enough.
  [[nodiscard]] bool is_hard() const { return of_stream < 1; }
  bool operator==(const Budget&) const = default;
};

/// "0.1 of stream", "50 kB/s", "2 GB/month" (of 30 days); nothing if it is neither, or not above 0.
std::optional<Budget> budget_of(std::string_view text);

}  // namespace rivulet::sync::policy
