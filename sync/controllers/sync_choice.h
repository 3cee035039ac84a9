#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "sync/controllers/budget.h"
#include "sync/controllers/linear_fit.h"
#include "sync/controllers/plateau.h"
#include "sync/policy/controller.h"
#include "sync/policy/sync_cost.h"

/// Chooses interval and keep ratio for the controller "auto" of `when`. Pure.
namespace rivulet::sync::policy {

/// Layout of that controller's memory. Averages are over the last synchronizations.
enum AutoPlace : std::size_t {
  steps_at,  ///< local steps of the last choice; 0: none yet
  keep_at,   ///< keep ratio of the last choice
  most_at,   ///< maximum local steps that the streams allow
  alike_at,  ///< first value of CoherenceFilter
  alike_variance_at,
  expected_common_at,
  expected_spread_at,
  seen_at,
  seen_steps_at,
  streams_age_at,
  plateau_at,                               ///< first value of Plateau
  rest_at = plateau_at + Plateau::numbers,  ///< minimum local steps on a plateau; 0: no plateau
  stable_at,                                ///< synchronizations since the last change of choice
  balance_at,                               ///< bytes left of the budget; negative: overspent
  ahead_at,         ///< remaining fraction of the initial advance of a soft budget, 1 to 0
  step_bytes_at,    ///< record bytes that a device trains per step
  step_seconds_at,  ///< time from one local step to the next
  wait_at,          ///< mean seconds that devices able to compute waited for the last device
  loss_at,          ///< mean over the last few hundred rows
  usual_loss_at,    ///< mean over the last few thousand rows
  loss_noise_at,    ///< relative variance of the loss of a single row
  overshot_at,      ///< synchronizations until local steps may increase again after a jump of the loss
  exchange_at,      ///< mean seconds of the last exchanges
  expected_at,      ///< predicted seconds of the next exchange
  injected_at,      ///< bytes of injected rows that a device sends per synchronization
  cost_at,          ///< first value of LinearFit
  memory_size = cost_at + LinearFit::numbers,
};

constexpr double streams_differ = 0.6;      ///< coherence below this value
constexpr double streams_are_alike = 0.8;   ///< coherence above this value
constexpr double steps_with_injection = 4;  ///< maximum for streams that differ, while rows are injected
constexpr double settling = 2;              ///< minimum synchronizations between two changes
constexpr double balance_seconds = 60;      ///< time to work off a budget deficit
constexpr double local_steps_of_budget_max = 8000;  ///< maximum local steps that a budget may demand

struct Choice {
  double steps = 1;
  double keep = 1;
  double loss = 0;   ///< estimated loss in points of accuracy
  bool fits = true;  ///< within the budget
};

/// Chooses interval and keep ratio within the limits for bytes and time, at minimum loss.
class Chooser {
 public:
  /// `most`: maximum local steps. `facts_bytes`: size of one device's facts.
  struct Limits {
    double most = 32;
    double facts_bytes = 0;
  };
  Chooser(const Inputs& inputs, const Budget& budget, const Limits& limits, std::span<const double> memory)
      : inputs_(inputs), budget_(budget), limits_(limits), memory_(memory) {}

  /// Cost of one synchronization.
  struct Price {
    double bytes = 0;    ///< at the network interface
    double counted = 0;  ///< charged to the budget; a soft budget counts only bytes passed to the transport
    double seconds = 0;
  };
  [[nodiscard]] Price price_of(double keep) const;
  /// Cost of one synchronization with low-rank contributions.
  [[nodiscard]] Price price_of_mixture() const;
  /// Name of the low-rank compressor.
  [[nodiscard]] static std::string_view mixture();
  /// Share of wall time spent synchronizing, with `steps` local steps between synchronizations.
  [[nodiscard]] double time_of(double steps, const Price& price) const;
  [[nodiscard]] Choice best() const;
  /// Whether low-rank gradients after every step fit budget and time. Where streams differ, they learn as
  /// well as dense gradients, also at learning rates at which topk does not (measured: bench/synchronizing
  /// skew).
  [[nodiscard]] bool affords_mixture() const;
  /// Whether to keep the last choice: it is within the limits, and `better` gains little.
  [[nodiscard]] bool may_stay(const Choice& better) const;
  /// Additional text for words_of().
  struct Words {
    std::string_view how;      ///< encoding of the contribution; empty: given by the keep ratio
    bool overlap = false;      ///< local steps overlap with the synchronization
    std::string_view streams;  ///< measured state of the streams
  };
  /// One phrase for the user.
  [[nodiscard]] std::string words_of(const Choice& choice, const Price& price, const Words& besides) const;

 private:
  [[nodiscard]] Price price_of(const Way& way) const;
  [[nodiscard]] bool injects() const;
  [[nodiscard]] bool may_grow() const;
  [[nodiscard]] bool rests() const;
  /// Whether a contribution is at most half as large as the facts: then only the interval matters.
  [[nodiscard]] bool is_tiny() const;
  [[nodiscard]] bool sends_all() const;
  /// Only the choice of local steps may spend ahead of the budget. The choice of the encoding uses the usual
  /// rate.
  enum class Spending : std::uint8_t { usual, ahead };
  [[nodiscard]] double steps_for_bytes(const Price& price, Spending spending = Spending::ahead) const;
  [[nodiscard]] double steps_for_time(const Price& price) const;
  [[nodiscard]] double loss_of(double steps, double keep, const Price& price) const;
  [[nodiscard]] Choice with(double keep) const;
  [[nodiscard]] Choice first() const;

  const Inputs& inputs_;
  const Budget& budget_;
  const Limits limits_;
  const std::span<const double> memory_;
};

}  // namespace rivulet::sync::policy
