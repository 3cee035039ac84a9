#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sync/collective/aggregation.h"

namespace rivulet::sync {

/// Sum of all payloads, added in rank order, or the reason why it failed.
struct PayloadSum {
  mutable std::vector<std::byte> numbers;  ///< never modified; mutable because GradientView is
  ErrorCode code{};
  std::string trouble;
  bool operator==(const PayloadSum&) const = default;
  /// Read-only.
  [[nodiscard]] GradientView view(GradientView like) const {
    like.data = numbers.data();
    return like;
  }
};
/// `payload_of(rank)`: the payload of a rank that sends.
Status add_payloads(const Exchange& exchange,
                    const std::function<std::span<const std::byte>(std::uint32_t)>& payload_of,
                    const GradientView& sum);
PayloadSum sum_of_payloads(const Exchange& exchange,
                           const std::function<std::span<const std::byte>(std::uint32_t)>& payload_of);

/// Creates the collective "gather" for a transport that gathers: each rank contributes its payload, and the
/// sum is decoded once, in rank order. Same bits and times as with messages. `early`: contributions are sent
/// before the plan is known, with send() before begin().
std::unique_ptr<SpeculativeAggregation> make_gathered_sum(bool early);

}  // namespace rivulet::sync
