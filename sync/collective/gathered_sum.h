#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sync/collective/aggregation.h"

namespace rivulet::sync {

/// The payloads of all ranks, added in rank order; or why they cannot be.
struct PayloadSum {
  mutable std::vector<std::byte> numbers;  ///< nobody changes them; a GradientView cannot express that
  ErrorCode code{};
  std::string trouble;
  bool operator==(const PayloadSum&) const = default;
  /// To be read only.
  [[nodiscard]] GradientView view(GradientView like) const {
    like.data = numbers.data();
    return like;
  }
};
/// `payload_of(rank)`: bytes of a rank that sends.
Status add_payloads(const Exchange& exchange,
                    const std::function<std::span<const std::byte>(std::uint32_t)>& payload_of,
                    const GradientView& sum);
PayloadSum sum_of_payloads(const Exchange& exchange,
                           const std::function<std::span<const std::byte>(std::uint32_t)>& payload_of);

/// The aggregation "gather" over a transport that gathers: everyone contributes its payload, and the sum of
/// all, decoded in rank order, is made once. Same bits and times as with messages. `early`: for contributions
/// that leave before the plan is known; send() before begin().
std::unique_ptr<SpeculativeAggregation> make_gathered_sum(bool early);

}  // namespace rivulet::sync
