#include "core/check.h"
#include "sync/collective/aggregation.h"

namespace rivulet::sync {

Result<std::size_t> encode_contribution(const Exchange& exchange, double weight, std::span<std::byte> out) {
  RIVULET_CHECK(exchange.mine.count == exchange.agreed.count, "contribution and result differ in length");
  auto used = exchange.codec->encode(exchange.mine, weight, exchange.plan->keep_ratio, out);
  if (used && used.value() > exchange.plan->payload_max_bytes)
    return Error{ErrorCode::protocol, "codec " + std::string(exchange.codec_entry->name) + " made " +
                                          std::to_string(used.value()) + " bytes, the plan allows " +
                                          std::to_string(exchange.plan->payload_max_bytes)};
  return used;
}

Status add_contribution(const Exchange& exchange, std::uint32_t rank, std::span<const std::byte> payload,
                        const GradientView& sum) {
  auto added = exchange.codec->decode_add(payload, sum);
  if (added) return added;
  return Error{added.error().code, "payload of rank " + std::to_string(rank) + ": " + added.error().message};
}

}  // namespace rivulet::sync
