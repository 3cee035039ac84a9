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

/// The weight in the agreed sum, 0..1, of a device that brings `rows`, if each other one brings the rows that
/// it was asked for.
double guess_weight(const policy::Schedule& schedule, std::uint32_t rank, std::uint32_t rows);

/// The second half of a round: contributions become the agreed sum. What may leave before the plan is known
/// leaves with the facts or right behind them. Private to SyncSession; owner: the train thread. Nothing waits
/// but wait().
///
///   enter -> [send_behind_facts] -> see(plan) -> [poll until done: what was for nothing]
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

  /// In a round that is entered so, contributions leave before its plan is known.
  [[nodiscard]] bool speculates(const policy::Schedule& schedule) const;
  /// A round begins. Returns what leaves in the message of the facts, whose length is that of expects().
  std::span<const std::byte> enter(const policy::Schedule& schedule, const Facts& facts,
                                   const GradientView& mine);
  /// ... and what leaves behind them, now.
  Status send_behind_facts(const GradientView& mine);
  /// The plan is known. pending: what was sent for nothing is still on its way.
  Progress see(const Round& round);
  /// Bytes behind each device's facts of the round that comes next.
  [[nodiscard]] std::size_t expects(const policy::Schedule& next) const;

  Progress begin(const Round& round, FactsExchange& facts, const GradientView& mine);
  Progress poll();
  bool wait() { return running_ != nullptr && running_->wait(); }
  [[nodiscard]] const GradientView& agreed() const noexcept { return agreed_; }
  [[nodiscard]] const Error& error() const noexcept { return error_; }
  [[nodiscard]] SpeculationOutcome outcome() const noexcept { return outcome_; }
  /// The sum was applied, or nothing of it was.
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
  policy::Schedule schedule_;  ///< of this round
  std::uint64_t round_ = 0;
  std::uint64_t draw_ = 0;  ///< for compressors that choose by chance
  std::uint32_t rows_ = 0;  ///< own
  Speculation speculation_;
  enum class Sent : std::uint8_t { nothing, with_facts, behind_facts };
  Sent sent_ = Sent::nothing;  ///< before the plan
  SpeculationOutcome outcome_ = SpeculationOutcome::none;
  std::vector<std::byte> payload_;                 ///< that leaves with the facts
  std::unique_ptr<SpeculativeAggregation> early_;  ///< null: none so far
  std::string early_collective_;                   ///< whose it is
  std::size_t early_bytes_ = 0;                    ///< of its payloads, for which receives are posted
  std::map<std::string, std::unique_ptr<Aggregation>, std::less<>> aggregations_;
  Aggregation* running_ = nullptr;  ///< one of those
  GradientView agreed_;
  Error error_;
};

}  // namespace rivulet::sync
