#include "sync/policy/agreement_cost.h"

#include <algorithm>

#include "sync/policy/coherence.h"

namespace rivulet::sync::policy {
namespace {

/// Of a segment: Ethernet, IP, TCP with time stamps; also of an acknowledgement.
constexpr double header = 66;
/// Of a message, besides what it says and one header: what Gloo's ends say to each other (three notes,
/// segments of their own), and acknowledgements. Measured at the sockets of four devices (bench/shaped
/// budget).
constexpr double message_bytes = 150 + 3.3 * header;

std::string_view compressor_for(double keep) {
  return keep >= 1 ? "dense" : "topk";
}

}  // namespace

double payloads_sent(std::string_view collective, std::size_t world) {
  const auto n = static_cast<double>(world);
  return collective == "gather" ? n - 1 : 2 * (n - 1) / n;
}

void compress_with(const PolicyConfig& config, std::string_view compressor, double keep, Schedule& next) {
  const CompressorEntry* entry = compressor_named(compressor);
  if (entry == nullptr) return;
  const ContributionShape shape = shape_of(config);
  next.compressor = compressor;
  next.keep_ratio = keep;
  next.payload_bytes =
      entry->slot_bytes(shape, keep, compressor_settings(config, *entry)) + shape.buffer_bytes();
}

Way way_of(const PolicyConfig& config, std::size_t world, std::string_view compressor, double keep) {
  Schedule next{.payload_bytes = config.contribution_bytes};
  compress_with(config, compressor, keep, next);
  const auto bytes = static_cast<double>(next.payload_bytes);
  const std::string_view collective = chooses_collective(config)
                                          ? cheapest_collective(world, compressor, bytes)
                                          : std::string_view(config.collective);
  return {std::string(collective), next.compressor, next.keep_ratio, next.payload_bytes};
}

std::string_view cheapest_collective(std::size_t world, std::string_view compressor, double payload_bytes) {
  // Below a quarter of a MiB saved, the phases of a sum cost more than its bytes.
  constexpr double worth_it = 256.0 * 1024;
  const auto n = static_cast<double>(world);
  const double saved = (n - 1) * (1 - 2 / n) * payload_bytes;
  if (compressor == "low_rank") return compressor;
  if (compressor == "dense") return saved >= worth_it ? "sum" : "gather";
  // Its payload goes with the facts, in one message to each; two_sided sends two more.
  return saved > 2 * (n - 1) * message_bytes ? "two_sided" : "gather";
}

double wire_bytes(double transport_bytes, std::size_t world) {
  constexpr double segment = 1448;
  const double messages = 3 * static_cast<double>(world - 1);
  return transport_bytes + header * (messages + 1.5 * transport_bytes / segment);
}

double unseen_bytes(const Way& way, std::size_t world) {
  // To each peer, about, facts among them: a small payload goes with those; a sum takes two, thin matrices
  // two sums, positions one message before theirs.
  double messages = 3;
  if (way.collective == "gather" && way.compressor != "dense") messages = 1;
  if (way.collective == "shared_index") messages = 4;
  if (way.collective == "low_rank") messages = 5;
  return static_cast<double>(world - 1) * messages * message_bytes;
}

Way way_of(const Schedule& entered) {
  return {entered.collective, entered.compressor, entered.keep_ratio, entered.payload_bytes};
}

double agreement_bytes(const PolicyConfig& config, std::size_t world, double keep, double facts_bytes) {
  return agreement_bytes(way_of(config, world, compressor_for(keep), keep), world, facts_bytes);
}

double agreement_bytes(const Way& way, std::size_t world, double facts_bytes) {
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
