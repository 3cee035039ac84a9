#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/gradient_view.h"
#include "core/result.h"
#include "sync/compressor/compressor.h"
#include "sync/residual/residual.h"
#include "sync/transport/transport.h"

namespace rivulet::sync {

/// One exchange of a round, created when its plan is known, or before it for an early contribution.
struct Exchange {
  std::uint64_t view = 0;  ///< token of the view
  std::uint64_t round = 0;
  std::span<const double> weights;  ///< [N]; empty: not known yet
  GradientView mine;                ///< [P + B], host, read only; ignored if this rank sends nothing
  GradientView agreed;              ///< [P + B], host, receives the result; undefined after a failure
  const CompressorEntry* compressor = nullptr;
  Coding coding;
  std::uint64_t slot_bytes = 0;  ///< size of one device's encoded parameters
  /// Null: `mine` is unweighted, and ranks of weight 0 send nothing. Else the parameters are those staged
  /// here, already weighted, and every rank sends. The same on all ranks.
  Residual* residual = nullptr;
  std::uint32_t contributors = 0;  ///< number of ranks with a non-zero weight

  [[nodiscard]] std::size_t payload_bytes() const { return slot_bytes + coding.shape->buffer_bytes(); }
  /// Returns the factor still to be applied to the parameters that a rank sends.
  [[nodiscard]] double parameter_weight(std::uint32_t rank) const {
    return residual != nullptr ? 1.0 : weights[rank];
  }
  [[nodiscard]] bool sends(std::uint32_t rank) const { return residual != nullptr || weights[rank] > 0; }
};

/// Encodes exchange.mine into a payload [slot, buffers], and removes what was sent from the residual.
void encode_contribution(const Exchange& exchange, std::span<std::byte> payload);
/// Adds the weighted payload of a rank to the sum. Errors: the compressor's, which name the rank.
Status add_contribution(const Exchange& exchange, std::uint32_t rank, std::span<const std::byte> payload,
                        const GradientView& sum);

/// Sums contributions into one agreed vector on every rank: weight * mine over all ranks, same bits
/// everywhere. A schedule over Transport without a thread: call begin(), then poll() until it is not pending.
/// poll() posts the next step when the last one has finished, and never waits. Owner: the train thread;
/// reused each round.
class Aggregation {
 public:
  virtual ~Aggregation() = default;
  virtual Status begin(Transport& transport, const Exchange& exchange) = 0;
  virtual Progress poll() = 0;
  /// While poll() is pending: Transport::wait() for the next operation it needs.
  virtual bool wait() { return false; }
  [[nodiscard]] virtual const Error& error() const = 0;
  /// Returns the result if it is not in Exchange::agreed: read-only, valid until the next begin().
  [[nodiscard]] virtual std::optional<GradientView> elsewhere() const { return std::nullopt; }
};

/// An Aggregation whose contributions are sent before the plan is known, because the plan is predicted:
///
///   send -> begin -> poll until done       the prediction was right
///   send -> give_up -> poll until done     it was wrong: messages in flight are received and discarded
///
/// For exchanges without a residual. Owner: the train thread; one object for all such rounds of a view.
class SpeculativeAggregation : public Aggregation {
 public:
  /// Sends a copy of exchange.mine, unweighted, if `has_rows`. exchange.weights are not known yet.
  virtual Status send(Transport& transport, const Exchange& exchange, bool has_rows) = 0;
  /// Discards the round. Ranks with a non-zero entry in `rows` have sent a contribution.
  virtual void give_up(std::span<const std::uint32_t> rows) = 0;
};

/// The communication pattern of a collective.
enum class Pattern : std::uint8_t {
  sum,               ///< each element is summed by one device; schedule not fixed
  ring,              ///< sum around a ring
  halving_doubling,  ///< sum by recursive halving, then doubling
  chosen_by_one,     ///< a sum of the entries that one device selects
  to_all,            ///< every payload to every device
};

/// Catalog: sync/collective/aggregation/<name>.cpp defines `const AggregationEntry aggregation_<name>`; its
/// keys are configuration keys.
struct AggregationEntry {
  std::string_view name;
  std::string_view help;
  std::unique_ptr<Aggregation> (*make)();
  std::unique_ptr<Aggregation> (*make_gathered)() =
      nullptr;  ///< for a transport that gathers; null: use make()
  std::unique_ptr<SpeculativeAggregation> (*make_speculative)(bool gathers) =
      nullptr;  ///< null: needs the plan
  /// Whether it can sum contributions of this compressor. Null: those of every compressor.
  bool (*fits)(const CompressorEntry& compressor) = nullptr;
  std::span<const Key> keys = {};
  /// Default for compressors that a configured collective cannot sum. An entry with `fits` takes precedence.
  bool stands_in = false;
  /// Bytes sent by a device: N - 1 payloads for to_all, 2 (N - 1) / N for sums.
  Pattern pattern = Pattern::sum;
  /// A device needs no data from its peers to send, so it may send before the plan is known, and in the same
  /// message as its facts if the compressor keeps a residual.
  bool may_leave_early = false;
  /// Approximate messages to each peer per synchronization, facts included unless they carry the payload.
  double messages = 3;
  /// Minimum saving in bytes per device, beyond the cost of its messages, for a choice by bytes.
  static constexpr double always = -std::numeric_limits<double>::infinity();
  static constexpr double never = std::numeric_limits<double>::infinity();
  double worth_saving = never;

  [[nodiscard]] double messages_with(const CompressorEntry& compressor) const {
    return may_leave_early && compressor.keeps_residual ? 1 : messages;
  }
  [[nodiscard]] double payloads_sent(std::size_t world) const {
    const auto n = static_cast<double>(world);
    return pattern == Pattern::to_all ? n - 1 : 2 * (n - 1) / n;
  }
};
std::span<const AggregationEntry* const> builtin_aggregations() noexcept;
/// Creates the entry's collective, the gathered one if the transport supports it.
std::unique_ptr<Aggregation> make_aggregation(const AggregationEntry& entry, Transport& transport);
/// As above; the entry must have make_speculative.
std::unique_ptr<SpeculativeAggregation> make_speculative(const AggregationEntry& entry, Transport& transport);
/// Values for AggregationEntry::fits.
inline bool sums_whole(const CompressorEntry& compressor) {
  return compressor.kind() == SlotKind::whole;
}
inline bool sums_entries(const CompressorEntry& compressor) {
  return compressor.kind() == SlotKind::entries;
}
inline bool sums_mixtures(const CompressorEntry& compressor) {
  return compressor.kind() == SlotKind::mixture;
}

inline constexpr std::size_t payload_header_bytes = 64;
/// Precedes every payload that is sent separately from facts.
struct PayloadHeader {
  std::uint64_t view = 0;
  std::uint64_t round = 0;
  std::uint16_t compressor = 0;
  std::uint64_t length = 0;
  bool operator==(const PayloadHeader&) const = default;
};
/// Checks the header of a rank's payload. Errors: protocol (damaged, or of a different view, round,
/// compressor or length).
Status check_header(const Exchange& exchange, std::uint32_t rank, std::span<const std::byte> bytes);
std::array<std::byte, payload_header_bytes> encode_header(const PayloadHeader& header);
/// Errors: protocol (magic, checksum). The caller checks view, round, compressor and length.
Result<PayloadHeader> decode_header(std::span<const std::byte> bytes);

}  // namespace rivulet::sync
