#include "sync/policy/sync_cost.h"

#include <algorithm>

#include "sync/policy/coherence.h"

namespace rivulet::sync::policy {
namespace {

/// Per segment: Ethernet, IP, TCP with timestamps. The same for an acknowledgement.
constexpr double header = 66;
/// Per message, in addition to its payload and one header: Gloo's handshake (three notes in separate
/// segments) and acknowledgements. Measured at the sockets of four devices (bench/shaped budget).
constexpr double message_bytes = 150 + 3.3 * header;

}  // namespace

std::string_view compressor_for(double keep) {
  return usual_compressor(keep >= 1 ? SlotKind::whole : SlotKind::entries).name;
}

double payloads_sent(std::string_view collective, std::size_t world) {
  static constexpr AggregationEntry unknown{};
  const AggregationEntry* how = collective_named(collective);
  return (how != nullptr ? *how : unknown).payloads_sent(world);
}

void compress_with(const PolicyConfig& config, std::string_view compressor, double keep, Schedule& next) {
  const CompressorEntry* entry = compressor_named(compressor);
  if (entry == nullptr) return;
  const ContributionShape shape = shape_of(config);
  next.way.compressor = compressor;
  next.way.keep_ratio = keep;
  next.way.payload_bytes =
      entry->slot_bytes(shape, keep, compressor_settings(config, *entry)) + shape.buffer_bytes();
}

Way way_of(const PolicyConfig& config, std::size_t world, std::string_view compressor, double keep) {
  Schedule next{.way = {.payload_bytes = config.contribution_bytes}};
  compress_with(config, compressor, keep, next);
  const auto bytes = static_cast<double>(next.way.payload_bytes);
  next.way.collective =
      chooses_collective(config) ? cheapest_collective(world, compressor, bytes) : config.collective;
  return next.way;
}

std::string_view cheapest_collective(std::size_t world, std::string_view compressor, double payload_bytes) {
  const AggregationEntry& usual = gathers_all();
  const CompressorEntry* small = compressor_named(compressor);
  if (small == nullptr) return usual.name;
  const AggregationEntry* best = &usual;
  double most = 0;
  for (const AggregationEntry* entry : builtin_aggregations()) {
    if (entry == &usual || !can_sum(*entry, *small)) continue;
    const double payloads = usual.payloads_sent(world) - entry->payloads_sent(world);
    const double messages = entry->messages_with(*small) - usual.messages_with(*small);
    const double saved = payloads * payload_bytes -
                         messages * static_cast<double>(world - 1) * message_bytes - entry->worth_saving;
    if (saved <= most) continue;
    best = entry;
    most = saved;
  }
  return best->name;
}

double wire_bytes(double transport_bytes, std::size_t world) {
  constexpr double segment = 1448;
  const double messages = 3 * static_cast<double>(world - 1);
  return transport_bytes + header * (messages + 1.5 * transport_bytes / segment);
}

double unseen_bytes(const Way& way, std::size_t world) {
  static constexpr AggregationEntry unknown{};
  const AggregationEntry* how = collective_named(way.collective);
  const CompressorEntry* small = compressor_named(way.compressor);
  if (how == nullptr) how = &unknown;
  const double messages = small != nullptr ? how->messages_with(*small) : how->messages;
  return static_cast<double>(world - 1) * messages * message_bytes;
}

double sync_bytes(const PolicyConfig& config, std::size_t world, double keep, double facts_bytes) {
  return sync_bytes(way_of(config, world, compressor_for(keep), keep), world, facts_bytes);
}

double sync_bytes(const Way& way, std::size_t world, double facts_bytes) {
  const auto n = static_cast<double>(world);
  const double payloads = payloads_sent(way.collective, world) * static_cast<double>(way.payload_bytes);
  return wire_bytes(payloads + (n - 1) * facts_bytes, world) + unseen_bytes(way, world);
}

double busy_share(const FactsTable& table, double step_seconds) {
  double computing = 0;
  for (const Facts& f : table.facts)
    computing += std::max(0.0, finite(f.compute_seconds)) / static_cast<double>(table.size());
  return std::min(1.0, computing / step_seconds);
}

}  // namespace rivulet::sync::policy
