#include <algorithm>

#include "core/check.h"
#include "sync/collective/aggregation.h"

namespace rivulet::sync {

Result<std::size_t> encode_contribution(const Exchange& exchange, double weight, std::span<std::byte> out) {
  RIVULET_CHECK(exchange.mine.count == exchange.agreed.count, "contribution and result differ in length");
  auto used = exchange.compressor->encode(exchange.mine, weight, exchange.keep_ratio, out);
  if (used && used.value() > exchange.slot_bytes)
    return Error{ErrorCode::protocol, "compressor " + std::string(exchange.compressor_entry->name) +
                                          " made " + std::to_string(used.value()) +
                                          " bytes, the plan allows " + std::to_string(exchange.slot_bytes)};
  return used;
}

Status add_contribution(const Exchange& exchange, Weighing weighing, std::uint32_t rank,
                        std::span<const std::byte> payload, const GradientView& sum) {
  auto added = weighing == Weighing::by_sender
                   ? exchange.compressor->decode_add(payload, sum)
                   : exchange.compressor->decode_add_weighted(payload, exchange.weights[rank], sum);
  if (added) return added;
  return Error{added.error().code, "payload of rank " + std::to_string(rank) + ": " + added.error().message};
}

Result<std::size_t> open_header(const Exchange& exchange, std::uint32_t rank,
                                std::span<const std::byte> bytes, std::optional<std::size_t> length) {
  const auto header = decode_header(bytes.first(std::min(bytes.size(), payload_header_bytes)));
  if (!header)
    return Error{header.error().code, "rank " + std::to_string(rank) + ": " + header.error().message};
  const auto wrong = [rank](const char* what, std::uint64_t got, std::uint64_t expected) {
    return Error{ErrorCode::protocol, "payload header of rank " + std::to_string(rank) + ": " + what +
                                          " is " + std::to_string(got) + ", expected " +
                                          std::to_string(expected)};
  };
  const PayloadHeader& h = header.value();
  if (h.view != exchange.view) return wrong("view", h.view, exchange.view);
  if (h.round != exchange.round) return wrong("round", h.round, exchange.round);
  if (h.compressor != exchange.compressor_entry->wire_id)
    return wrong("compressor", h.compressor, exchange.compressor_entry->wire_id);
  if (length && h.length != *length) return wrong("length", h.length, *length);
  if (!exchange.weights.empty() && h.length > exchange.slot_bytes)
    return wrong("length", h.length, exchange.slot_bytes);
  return h.length;
}

}  // namespace rivulet::sync
