#include <algorithm>

#include "core/check.h"
#include "sync/coding/weighted_numbers.h"
#include "sync/collective/aggregation.h"

namespace rivulet::sync {

void encode_contribution(const Exchange& exchange, std::span<std::byte> payload) {
  const ContributionShape& shape = *exchange.coding.shape;
  RIVULET_CHECK(exchange.mine.count == shape.count(), "a contribution with the wrong shape");
  RIVULET_CHECK(payload.size() == exchange.payload_bytes(), "a payload of the wrong size");
  const std::size_t p = shape.parameters();
  const auto slot = payload.first(exchange.slot_bytes);
  exchange.compressor->encode(exchange.coding, exchange.mine.slice(0, p), slot);
  std::ranges::copy(exchange.mine.slice(p, shape.buffers).host_bytes(),
                    payload.begin() + static_cast<std::ptrdiff_t>(slot.size()));
  if (exchange.residual != nullptr) exchange.residual->sent(*exchange.compressor, exchange.coding, slot);
}

Status add_contribution(const Exchange& exchange, std::uint32_t rank, std::span<const std::byte> payload,
                        const GradientView& sum) {
  RIVULET_CHECK(payload.size() == exchange.payload_bytes(), "a payload of the wrong size");
  const ContributionShape& shape = *exchange.coding.shape;
  const std::size_t p = shape.parameters();
  const double weight = exchange.weights[rank];
  auto added = exchange.compressor->decode_add(exchange.coding, payload.first(exchange.slot_bytes),
                                               exchange.parameter_weight(rank), sum.slice(0, p));
  if (!added)
    return Error{
        added.error().code, "payload of rank " + std::to_string(rank) + ": " + added.error().message, {rank}};
  if (shape.buffers > 0 && weight > 0)
    add_scaled(payload.subspan(exchange.slot_bytes).data(), weight, sum.slice(p, shape.buffers));
  return ok();
}

Status check_header(const Exchange& exchange, std::uint32_t rank, std::span<const std::byte> bytes) {
  const auto header = decode_header(bytes.first(std::min(bytes.size(), payload_header_bytes)));
  if (!header)
    return Error{header.error().code, "rank " + std::to_string(rank) + ": " + header.error().message, {rank}};
  const auto wrong = [rank](const char* what, std::uint64_t got, std::uint64_t expected) {
    return Error{ErrorCode::protocol,
                 "payload header of rank " + std::to_string(rank) + ": " + what + " is " +
                     std::to_string(got) + ", expected " + std::to_string(expected),
                 {rank}};
  };
  const PayloadHeader& h = header.value();
  if (h.view != exchange.view) return wrong("view", h.view, exchange.view);
  if (h.round != exchange.round) return wrong("round", h.round, exchange.round);
  if (h.compressor != exchange.compressor->wire_id)
    return wrong("compressor", h.compressor, exchange.compressor->wire_id);
  if (h.length != exchange.payload_bytes()) return wrong("length", h.length, exchange.payload_bytes());
  return ok();
}

}  // namespace rivulet::sync
