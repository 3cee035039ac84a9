#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "sync/controllers/budget.h"
#include "sync/controllers/linear_fit.h"
#include "sync/controllers/plateau.h"
#include "sync/policy/agreement_cost.h"
#include "sync/policy/controller.h"

/// Which way of agreeing hurts least, for the controller "auto" of when. Pure.
namespace rivulet::sync::policy {

/// What that controller remembers, by place; averages are of the last agreements.
enum AutoPlace : std::size_t {
  steps_at,  ///< own steps of the last choice; 0: there was none
  keep_at,   ///< its share of the parameters
  most_at,   ///< own steps that the streams allow
  alike_at,  ///< of CoherenceFilter
  alike_variance_at,
  expected_common_at,
  expected_spread_at,
  seen_at,
  seen_steps_at,
  streams_age_at,
  plateau_at,  ///< of Plateau
  rest_at =
      plateau_at + Plateau::numbers,  ///< own steps at least, while there is nothing to learn; 0: there is
  settled_at,                         ///< agreements since the choice has changed
  balance_at,       ///< bytes that a device may send beyond its share of rows; below 0: it has sent too much
  ahead_at,         ///< of what a budget that steers may be spent ahead at first, the part that is left
  step_bytes_at,    ///< of the records that a device trains in a step
  step_seconds_at,  ///< from one own step to the next
  wait_at,          ///< seconds that devices which could compute have waited for the last one
  loss_at,          ///< of the last few hundred rows
  usual_loss_at,    ///< of the last few thousand
  loss_noise_at,    ///< relative variance of the loss of a single row
  overshot_at,      ///< agreements until own steps may become more again, after the loss has jumped
  exchange_at,      ///< seconds that the last exchanges took
  expected_at,      ///< that the next one should take
  copies_at,        ///< bytes that a device sends of its rows with an agreement
  cost_at,          ///< of LinearFit
  memory_size = cost_at + LinearFit::numbers,
};

constexpr double streams_differ = 0.6;     ///< coherence below
constexpr double streams_are_alike = 0.8;  ///< ... above
constexpr double steps_with_copies = 4;    ///< that streams which differ allow while devices see others' rows
constexpr double settling = 2;             ///< agreements between two changes
constexpr double balance_seconds = 60;     ///< in which what was spent too much comes back
constexpr double longest_apart = 8000;     ///< own steps that a budget may ask for

struct Choice {
  double steps = 1;
  double keep = 1;
  double loss = 0;   ///< points of accuracy that it costs, about
  bool fits = true;  ///< the budget
};

/// How to agree so that bytes and time fit, and little is lost.
class Chooser {
 public:
  /// `most`: own steps; `facts_bytes`: of one device.
  struct Limits {
    double most = 32;
    double facts_bytes = 0;
  };
  Chooser(const Inputs& inputs, const Budget& budget, const Limits& limits, std::span<const double> memory)
      : inputs_(inputs), budget_(budget), limits_(limits), memory_(memory) {}

  /// What an agreement on this share costs.
  struct Price {
    double bytes = 0;  ///< at the interface
    double counted =
        0;  ///< by the budget: one that only steers does not count what nobody gave to the transport
    double seconds = 0;
  };
  [[nodiscard]] Price price_of(double keep) const;
  /// ... on a little of all of them.
  [[nodiscard]] Price price_of_mixture() const;
  /// The compressor that sends that.
  [[nodiscard]] static std::string_view mixture();
  /// Seconds of an agreement to those of the steps before it, and its own.
  [[nodiscard]] double time_of(double steps, const Price& price) const;
  [[nodiscard]] Choice best() const;
  /// Thin matrices of gradients fit the budget and the time, in every step: where streams differ they learn
  /// what whole gradients do, also at rates at which topk does not (measured: bench/agreeing skew).
  [[nodiscard]] bool affords_mixture() const;
  /// What was chosen last may stay: it fits, and hardly anything is better.
  [[nodiscard]] bool may_stay(const Choice& better) const;
  /// What is said besides.
  struct Words {
    std::string_view how;      ///< it is sent, if not as a share
    bool overlap = false;      ///< steps go on while the group agrees
    std::string_view streams;  ///< what is known of them
  };
  /// One phrase for people.
  [[nodiscard]] std::string words_of(const Choice& choice, const Price& price, const Words& besides) const;

 private:
  [[nodiscard]] Price price_of(const Way& way) const;
  [[nodiscard]] bool has_copies() const;
  [[nodiscard]] bool may_grow() const;
  [[nodiscard]] bool rests() const;
  /// All parameters weigh half as much as facts at most: how often the group agrees costs, not on how much.
  [[nodiscard]] bool is_tiny() const;
  [[nodiscard]] bool sends_all() const;
  /// Another way to send than by entries is not taken for as long as there is something to spend ahead.
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
