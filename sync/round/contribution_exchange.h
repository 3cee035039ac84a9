#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/gradient_view.h"
#include "sync/collective/aggregation.h"
#include "sync/residual/residual.h"
#include "sync/round/facts_exchange.h"
#include "sync/round/round.h"
#include "sync/round/speculation.h"

namespace rivulet::sync {

/// Predicted weight in the agreed sum, 0..1, of a device with `rows`, if all others contribute their
/// requested rows.
double guess_weight(const policy::Schedule& schedule, std::uint32_t rank, std::uint32_t rows);

/// The second half of a round: sums the contributions. Contributions that may be sent before the plan is
/// known leave with the facts or right after them. Private to SyncSession. Owner: the train thread. Only
/// wait() waits.
///
///   enter -> [send_behind_facts] -> see(plan) -> [poll until done: wasted contributions]
///         -> [begin -> poll until done -> agreed()] -> finish
class ContributionExchange {
 public:
  struct Parts {
    Transport& transport;
    std::uint64_t view = 0;  ///< token
    const ContributionShape& shape;
    const Settings& settings;
    std::span<const CompressorEntry* const> compressors;
    std::span<const AggregationEntry* const> aggregations;
    Residual& residual;
    GradientView scratch;  ///< [P + B]
    bool speculate = true;
  };
  explicit ContributionExchange(const Parts& parts);

  /// Whether contributions are sent before the plan, in a round with this schedule.
  [[nodiscard]] bool speculates(const policy::Schedule& schedule) const;
  /// Begins a round. Returns the payload to send with the facts, expects() bytes long.
  std::span<const std::byte> enter(const policy::Schedule& schedule, const Facts& facts,
                                   const GradientView& mine);
  /// Sends the contribution right after the facts, if the schedule requires it.
  Status send_behind_facts(const GradientView& mine);
  /// Call when the plan is known. Returns pending while a wasted contribution is still being sent.
  Progress see(const Round& round);
  /// Payload bytes sent with each device's facts in the next round.
  [[nodiscard]] std::size_t expects(const policy::Schedule& next) const;

  Progress begin(const Round& round, FactsExchange& facts, const GradientView& mine);
  Progress poll();
  bool wait() { return running_ != nullptr && running_->wait(); }
  [[nodiscard]] const GradientView& agreed() const noexcept { return agreed_; }
  [[nodiscard]] const Error& error() const noexcept { return error_; }
  [[nodiscard]] SpeculationOutcome outcome() const noexcept { return outcome_; }
  /// Ends the round. `applied`: the whole sum was applied; otherwise nothing was.
  void finish(bool applied);

 private:
  [[nodiscard]] const CompressorEntry& compressor_of(const policy::Schedule& schedule) const;
  [[nodiscard]] bool flushes(const Round& round) const;
  [[nodiscard]] bool masks_momentum() const;
  [[nodiscard]] Exchange exchange(const GradientView& mine) const;
  [[nodiscard]] Aggregation& collective();
  Progress add_up(FactsExchange& facts, Exchange& exchange);
  Progress fail(Error error);

  const Parts parts_;
  policy::Schedule schedule_;  ///< schedule of this round
  std::uint64_t round_ = 0;
  std::uint64_t draw_ = 0;  ///< seed for compressors that select randomly
  std::uint32_t rows_ = 0;  ///< rows of this device
  Speculation speculation_;
  enum class Sent : std::uint8_t { nothing, with_facts, behind_facts };
  Sent sent_ = Sent::nothing;  ///< what was sent before the plan
  SpeculationOutcome outcome_ = SpeculationOutcome::none;
  std::vector<std::byte> payload_;                 ///< sent with the facts
  std::unique_ptr<SpeculativeAggregation> early_;  ///< null: none so far
  std::string early_collective_;                   ///< collective of early_
  std::size_t early_bytes_ = 0;                    ///< size of its payloads, for which receives are posted
  std::map<std::string, std::unique_ptr<Aggregation>, std::less<>> aggregations_;
  Aggregation* running_ = nullptr;  ///< the running one of aggregations_
  GradientView agreed_;
  Error error_;
};

}  // namespace rivulet::sync
