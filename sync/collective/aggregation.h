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

/// One exchange of a round, after its plan is known (or before it, where a contribution leaves early).
struct Exchange {
  std::uint64_t view = 0;  ///< token
  std::uint64_t round = 0;
  std::span<const double> weights;  ///< [N]; empty: not known yet
  GradientView mine;                ///< [P + B], host; never written to. Ignored when it is not sent.
  GradientView agreed;              ///< [P + B], host scratch for the result; garbage after a failure
  const CompressorEntry* compressor = nullptr;
  Coding coding;
  std::uint64_t slot_bytes = 0;  ///< of one device's parameters
  /// Null: `mine` is unweighted, and ranks of weight 0 send nothing. Else its parameters are weighted, for
  /// they are what this holds staged, and everybody sends. The same on all ranks.
  Residual* residual = nullptr;
  std::uint32_t contributors = 0;  ///< ranks with a weight

  [[nodiscard]] std::size_t payload_bytes() const { return slot_bytes + coding.shape->buffer_bytes(); }
  /// What is still to be multiplied to the parameters that a rank sends.
  [[nodiscard]] double parameter_weight(std::uint32_t rank) const {
    return residual != nullptr ? 1.0 : weights[rank];
  }
  [[nodiscard]] bool sends(std::uint32_t rank) const { return residual != nullptr || weights[rank] > 0; }
};

/// Fills a payload [slot, buffers] by exchange.mine; what it takes leaves the residual.
void encode_contribution(const Exchange& exchange, std::span<std::byte> payload);
/// Adds the payload of a rank, weighted as the exchange says. Errors: the compressor's, which name the rank.
Status add_contribution(const Exchange& exchange, std::uint32_t rank, std::span<const std::byte> payload,
                        const GradientView& sum);

/// How contributions become one agreed vector on every rank: sum over ranks of weight * mine, same bits
/// everywhere. A schedule over Transport with no thread of its own: begin(), then poll() until it is not
/// pending. poll() posts the next step when the last one finished; it never waits. Owner: the train thread;
/// reused round after round.
class Aggregation {
 public:
  virtual ~Aggregation() = default;
  virtual Status begin(Transport& transport, const Exchange& exchange) = 0;
  virtual Progress poll() = 0;
  /// While poll() is pending: as Transport::wait() for what it needs next.
  virtual bool wait() { return false; }
  [[nodiscard]] virtual const Error& error() const = 0;
  /// Where the result is if not in Exchange::agreed: to be read only, and until the next begin().
  [[nodiscard]] virtual std::optional<GradientView> elsewhere() const { return std::nullopt; }
};

/// An Aggregation whose contributions leave before the plan is known, because it was expected:
///
///   send -> begin -> poll until done       the plan came as expected
///   send -> give_up -> poll until done     it did not: what is on its way is received and forgotten
///
/// For exchanges without a residual. Owner: the train thread; one for all such rounds of a view.
class SpeculativeAggregation : public Aggregation {
 public:
  /// exchange.mine, unweighted, leaves now if `has_rows`; it is copied. exchange.weights are not known yet.
  virtual Status send(Transport& transport, const Exchange& exchange, bool has_rows) = 0;
  /// The ranks whose rows are not 0 in `rows` have sent something.
  virtual void give_up(std::span<const std::uint32_t> rows) = 0;
};

/// Who sends what to whom.
enum class Pattern : std::uint8_t {
  sum,               ///< each number is summed by one device, one way or another
  ring,              ///< ... from neighbor to neighbor
  halving_doubling,  ///< ... by halves
  chosen_by_one,     ///< a sum of the entries that one device names before
  to_all,            ///< everybody's payload to everybody
};

/// Catalog: sync/collective/aggregation/<name>.cpp defines `const AggregationEntry aggregation_<name>`; its
/// keys are configuration keys.
struct AggregationEntry {
  std::string_view name;
  std::string_view help;
  std::unique_ptr<Aggregation> (*make)();
  std::unique_ptr<Aggregation> (*make_gathered)() = nullptr;  ///< for a transport that gathers; null: make()
  std::unique_ptr<SpeculativeAggregation> (*make_speculative)(bool gathers) =
      nullptr;  ///< null: it needs the plan
  /// Contributions that this compressor makes small can be summed so. Null: all can.
  bool (*fits)(const CompressorEntry& compressor) = nullptr;
  std::span<const Key> keys = {};
  /// Sums what others cannot. Of two that can, the one that has `fits`.
  bool stands_in = false;
  /// Of everybody's payload to everybody N - 1 leave a device, of a sum 2 (N - 1) / N.
  Pattern pattern = Pattern::sum;
  /// What a device sends needs nothing of others' before: it may leave before the plan is known, inside the
  /// facts' message if the compressor keeps a residual.
  bool may_leave_early = false;
  /// To each peer in one agreement, about, the facts' among them, unless those carry the payload.
  double messages = 3;
  /// Bytes of a device that it must save, besides those of its messages, before it is chosen by bytes.
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
/// The entry's own, as the transport can.
std::unique_ptr<Aggregation> make_aggregation(const AggregationEntry& entry, Transport& transport);
/// Same; the entry must have one.
std::unique_ptr<SpeculativeAggregation> make_speculative(const AggregationEntry& entry, Transport& transport);
/// For AggregationEntry::fits.
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
/// In front of every payload that travels apart from facts.
struct PayloadHeader {
  std::uint64_t view = 0;
  std::uint64_t round = 0;
  std::uint16_t compressor = 0;
  std::uint64_t length = 0;
  bool operator==(const PayloadHeader&) const = default;
};
/// Checks the header in front of a rank's payload. Errors: protocol (broken, or of another view, round,
/// compressor or length).
Status check_header(const Exchange& exchange, std::uint32_t rank, std::span<const std::byte> bytes);
std::array<std::byte, payload_header_bytes> encode_header(const PayloadHeader& header);
/// Errors: protocol (magic, checksum). Whether view, round, compressor and length are right is the caller's
/// check.
Result<PayloadHeader> decode_header(std::span<const std::byte> bytes);

}  // namespace rivulet::sync
