#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "sync/coding/sketch.h"
#include "sync/policy/agreement_cost.h"
#include "sync/policy/budget.h"
#include "sync/policy/coherence.h"
#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

// How often the group agrees, and on what share of the parameters, from what it has measured:
//
//   bytes   an agreement sends c(keep) bytes; rows bring so many a step, of which a share may be spent
//   time    an agreement takes A + B c(keep) seconds, fitted; a small part of the time may go by with it
//   alike   kappa = |sum rho D|^2 / sum rho |D|^2, of sketches of the movements D, over what it would be if
//           all streams were alike, from the odd and the even steps of each device. Well below 1: the streams
//           differ, and devices that step on their own would drift apart. So more own steps are made by and
//           by only.
//
// Among what fits, the one that hurts least: a loss that grows with own steps and with each halving of the
// share (measured: bench/agreeing, docs/adr/0030). One agreement late, for what it measures is of the one
// before.

constexpr std::array keys{
    Key{.name = "sync.budget",
        .type = KeyType::text,
        .text = "\"1 of stream\"",
        .help = "of policy auto: what a device may send in order to agree, as a share of the bytes of its "
                "group's "
                "records or as bytes in a time (\"0.1 of stream\", \"50 kB/s\", \"2 GB/month\")",
        .fits = [](std::string_view text) { return budget_of(text).has_value(); },
        .form = "like 0.1 of stream, 50 kB/s or 2 GB/month"},
    Key{.name = "sync.own_steps_max",
        .type = KeyType::integer,
        .text = "32",
        .help = "of policy auto: own steps at most, unless the budget asks for more",
        .least = 1,
        .most = 8000},
};

constexpr std::array measurements{
    FactField{"record_bytes", "bytes of the records behind its rows"},
    FactField{"apart_seconds", "since the last agreement"},
    FactField{"sent_bytes", "since its last facts"},
    FactField{"exchange_seconds", "of the last agreement, without waiting for who came later"},
    FactField{"steps_signal", "inner product of its odd and its even steps"},
    FactField{"steps_noise", "a quarter of their squared distance"},
    FactField{"movement_sketch", "of how far it has come", Sketch::small},
};
enum Field : std::size_t {
  record_bytes,
  apart_seconds,
  sent_bytes,
  exchange_seconds,
  steps_signal,
  steps_noise,
  movement_sketch,
};
constexpr double facts_bytes = facts_head_bytes + sizeof(float) * (movement_sketch + Sketch::small) + 64;

/// What it remembers, by place; averages are of the last agreements.
enum Place : std::size_t {
  steps_at,  ///< own steps of the last choice; 0: there was none
  keep_at,   ///< its share of the parameters
  most_at,   ///< own steps that the streams allow
  alike_at,  ///< of CoherenceFilter
  alike_variance_at,
  settled_at,       ///< agreements since the choice has changed
  balance_at,       ///< bytes that a device may send beyond its share of rows; below 0: it has sent too much
  step_bytes_at,    ///< of the records that a device trains in a step
  step_seconds_at,  ///< from one own step to the next
  wait_at,          ///< seconds that devices which could compute have waited for the last one
  loss_at,          ///< of the last few hundred rows
  usual_loss_at,    ///< of the last few thousand
  loss_noise_at,    ///< relative variance of the loss of a single row
  overshot_at,      ///< agreements until own steps may become more again, after the loss has jumped
  exchange_at,      ///< seconds that the last exchanges took
  expected_at,      ///< that the next one should take
  cost_at,          ///< of CostFit
  memory_size = cost_at + CostFit::numbers,
};

constexpr std::array figures{
    Figure{"coherence", "how alike the streams move the model: about 1 where they are alike", alike_at},
    Figure{"exchange_seconds", "of the last exchanges, without waiting for who came later", exchange_at},
    Figure{"expected_exchange_seconds", "of the next one, by what others took", expected_at},
    Figure{"wait_seconds", "that devices which could compute have waited for the last one", wait_at},
};

constexpr double time_share = 0.05;  ///< of the time, for agreements
constexpr double first_most = 32;
constexpr double differ = 0.6;  ///< below: streams differ
constexpr double alike = 0.8;   ///< above: they do not
constexpr double settling = 2;  ///< agreements between two changes
constexpr double balance_seconds = 60;
constexpr double longest = 8000;  ///< own steps that a budget may ask for
/// Points of accuracy that a choice costs.
constexpr double loss_of_step = 0.04;  ///< each beyond the first four
constexpr double loss_of_halving = 0.48;
constexpr double enough_of_gradients = 0.02;  ///< a larger share of them learns no more
constexpr double loss_of_drift = 4;           ///< each doubling beyond what the streams allow
constexpr double loss_of_growth = 1;          ///< ... while they are alike
constexpr double loss_of_slowness = 1.5;      ///< each halving of the rows in a time
constexpr double loss_of_crawling = 4;        ///< ... below this part of what a device can
constexpr double least_speed = 0.4;
constexpr double few_rows = 512;
constexpr double many_rows = 4096;
constexpr double usual_weight = 0.3;  ///< of one agreement at most: it may have been odd itself
constexpr double jump = 1.5;
constexpr double jump_deviations = 4;  ///< of the noise of its rows
constexpr double recovery = 16;
constexpr double first_steps = 4;  ///< streams that differ lead apart before it is known
constexpr double first_keep = 0.02;
constexpr double harmless_steps = 4;
constexpr std::array shares{0.05, 0.03, 0.02, 0.01, 0.005};

double measured(const Inputs& inputs, std::size_t rank, std::size_t field) {
  return finite(inputs.table.facts[rank].measurements[inputs.measured + field]);
}
/// Of bytes and seconds.
double amount(const Inputs& inputs, std::size_t rank, Field field) {
  return std::max(0.0, measured(inputs, rank, field));
}
double sum_of(const Inputs& inputs, Field field) {
  double sum = 0;
  for (std::size_t rank = 0; rank < inputs.table.size(); ++rank) sum += amount(inputs, rank, field);
  return sum;
}

double rows_of(const FactsTable& table) {
  double rows = 0;
  for (const Facts& f : table.facts) rows += f.rows;
  return rows;
}

std::vector<Movement> movements_of(const Inputs& inputs) {
  std::vector<Movement> movements;
  movements.reserve(inputs.table.size());
  for (std::size_t rank = 0; rank < inputs.table.size(); ++rank) {
    const Facts& facts = inputs.table.facts[rank];
    const auto all = std::span(facts.measurements).subspan(inputs.measured);
    movements.push_back({.rows = static_cast<double>(facts.rows),
                         .sketch = all.subspan(movement_sketch, Sketch::small),
                         .signal = all[steps_signal],
                         .noise = all[steps_noise]});
  }
  return movements;
}

void average(double& place, double now, double weight) {
  place = place == 0 ? now : place + weight * (now - place);
}

/// What steps, rows and exchanges cost, and what of the budget is left.
void learn_costs(const Inputs& inputs, const Budget& budget, std::span<double> memory) {
  const auto n = static_cast<double>(inputs.table.size());
  const double turns = inputs.entered.own_steps;
  const double bytes = sum_of(inputs, record_bytes) / n;
  const double exchange = sum_of(inputs, exchange_seconds) / n;
  double sent = 0;
  double seconds = 0;  // of the last one to come
  for (std::size_t rank = 0; rank < inputs.table.size(); ++rank) {
    sent = std::max(sent, amount(inputs, rank, sent_bytes));
    seconds = std::max(seconds, amount(inputs, rank, apart_seconds));
  }
  if (bytes > 0) average(memory[step_bytes_at], bytes / turns, 0.5);
  if (seconds > 0) {
    average(memory[step_seconds_at], seconds / turns, 0.5);
    const double lost = seconds - sum_of(inputs, apart_seconds) / n;
    average(memory[wait_at], lost * busy_share(inputs.table, seconds / turns), 0.2);
  }
  if (exchange > 0) average(memory[exchange_at], exchange, 0.5);
  if (sent > 0 && exchange > 0) CostFit(memory.subspan(cost_at)).add(sent, exchange);
  const double may =
      budget.of_stream > 0 ? budget.of_stream * bytes : budget.bytes_per_second * (seconds + exchange);
  const double rate = seconds > 0 ? may / seconds : 0;
  double spent = wire_bytes(sent, inputs.table.size());
  if (budget.is_hard())
    spent += unseen_bytes(inputs.table.size()) + standing_bytes_per_second * (seconds + exchange);
  memory[balance_at] =
      std::clamp(memory[balance_at] + may - spent, -balance_seconds * rate, balance_seconds * rate);
}

/// Movements that were sent late, or came from too many steps, have gone too far: fewer steps, at once.
void learn_loss(const Inputs& inputs, double rows, std::span<double> memory) {
  double loss = 0;
  for (const Facts& f : inputs.table.facts) loss += finite(f.loss_sum) / rows;
  memory[overshot_at] = std::max(0.0, memory[overshot_at] - 1);
  average(memory[loss_at], loss, std::min(1.0, rows / few_rows));
  const double usual = memory[usual_loss_at];
  const double noise = jump_deviations * std::sqrt(memory[loss_noise_at] / std::max(rows, few_rows));
  const bool jumps = usual > 0 && memory[loss_at] > usual * std::max(jump, 1 + noise);
  if (!jumps) {
    average(memory[usual_loss_at], loss, std::min(usual_weight, rows / many_rows));
    if (const double variance = loss_variance(inputs.table, loss, usual); variance > 0)
      average(memory[loss_noise_at], variance, variance > memory[loss_noise_at] ? 0.2 : 0.05);
    return;
  }
  memory[most_at] = std::max(1.0, std::floor(memory[steps_at] / 2));
  memory[overshot_at] = recovery;
  memory[settled_at] = settling;
  memory[usual_loss_at] = memory[loss_at];
}

/// What has been measured since the last agreement goes into memory.
void learn(const Inputs& inputs, const Budget& budget, std::span<double> memory) {
  const double rows = rows_of(inputs.table);
  learn_costs(inputs, budget, memory);
  learn_loss(inputs, rows, memory);
  CoherenceFilter(memory.subspan(alike_at)).add(coherence(movements_of(inputs)));
}

/// More own steps by and by, fewer at once.
void follow_streams(double most, std::span<double> memory) {
  if (memory[most_at] == 0) memory[most_at] = std::min(first_most, most);
  if (memory[alike_at] == 0) return;
  const CoherenceFilter streams(memory.subspan(alike_at));
  if (streams.below(differ)) {
    const double part = streams.below(differ / 2) ? 4 : 2;
    memory[most_at] = std::max(1.0, std::floor(std::min(memory[most_at], memory[steps_at]) / part));
    return;
  }
  const bool limits = memory[steps_at] >= memory[most_at] && memory[overshot_at] == 0;
  if (streams.alike() > alike && limits && memory[settled_at] >= settling)
    memory[most_at] = std::min(most, 2 * memory[most_at]);
}

struct Choice {
  double steps = 1;
  double keep = shares.front();
  double loss = 0;
  bool fits = true;  ///< the budget
};

/// How to agree so that bytes and time fit, and little is lost.
class Chooser {
 public:
  Chooser(const Inputs& inputs, const Budget& budget, double most, std::span<double> memory)
      : inputs_(inputs), budget_(budget), most_(most), memory_(memory) {}

  /// What an agreement on this share costs.
  struct Price {
    double bytes = 0;
    double seconds = 0;
  };
  [[nodiscard]] Price price_of(double keep) const {
    const double bytes = agreement_bytes(inputs_.config, inputs_.table.size(), keep, facts_bytes);
    return {bytes, memory_[wait_at] + CostFit(memory_.subspan(cost_at)).seconds(bytes)};
  }
  /// Seconds of an agreement to those of the steps before it.
  [[nodiscard]] double time_of(double steps, const Price& price) const {
    const double stepping = steps * memory_[step_seconds_at];
    return price.seconds > 0 ? price.seconds / (price.seconds + stepping) : 0;
  }
  [[nodiscard]] Choice with(double keep) const {
    const Price price = price_of(keep);
    const double for_bytes = steps_for_bytes(price);
    // What the streams do not allow is not done for the time, only for the budget.
    const double for_time = std::min({steps_for_time(price), most_, memory_[most_at]});
    // Where streams are alike, a few own steps learn more than as many sums (measured: bench/agreeing).
    const double least = may_grow() ? std::min(harmless_steps, most_) : 1;
    const double steps = std::clamp(std::max({for_bytes, for_time, least}), 1.0, longest);
    return {steps, keep, loss_of(steps, keep, price), for_bytes <= longest};
  }
  [[nodiscard]] Choice best() const {
    if (memory_[step_bytes_at] == 0) return first();
    if (sends_all()) return {1, 1, 0, true};
    if (inputs_.config.compression_policy != "auto") return with(inputs_.entered.keep_ratio);
    Choice best = with(shares.front());
    for (const double keep : std::span(shares).subspan(1))
      if (const Choice other = with(keep); other.loss <= best.loss) best = other;
    return best;
  }
  /// What was chosen last may stay: it fits, and hardly anything is better.
  [[nodiscard]] bool may_stay(const Choice& better) const {
    const double steps = memory_[steps_at];
    const double keep = memory_[keep_at];
    if (steps == 0 || (keep >= 1) != (better.keep >= 1)) return false;
    const Price price = price_of(keep);
    const bool in_time =
        time_of(steps, price) < 1.25 * time_share || steps >= std::min(most_, memory_[most_at]);
    if (steps_for_bytes(price) > steps || !in_time) return false;
    return memory_[settled_at] < settling || loss_of(steps, keep, price) < better.loss + 0.1;
  }

 private:
  [[nodiscard]] bool may_grow() const { return memory_[alike_at] > alike && memory_[overshot_at] == 0; }
  [[nodiscard]] double steps_for_bytes(const Price& price) const {
    const double a_step = budget_.of_stream > 0 ? budget_.of_stream * memory_[step_bytes_at]
                                                : budget_.bytes_per_second * memory_[step_seconds_at];
    // What was sent too much, or could have been sent, comes back by and by.
    const double rate = memory_[step_seconds_at] > 0 ? a_step / memory_[step_seconds_at] : 0;
    const double back = rate > 0 ? std::clamp(memory_[balance_at] / (balance_seconds * rate), -0.5, 0.5) : 0;
    if (a_step <= 0) return 1;
    const bool hard = budget_.is_hard();
    const double standing = hard ? standing_bytes_per_second * memory_[step_seconds_at] : 0;
    const double left = a_step * (1 + back) - standing;
    const double bytes = price.bytes + (hard ? unseen_bytes(inputs_.table.size()) : 0);
    return left > 0 ? std::ceil(bytes / left) : std::numeric_limits<double>::infinity();
  }
  [[nodiscard]] double steps_for_time(const Price& price) const {
    const double a_step = memory_[step_seconds_at];
    return a_step > 0 ? std::ceil(price.seconds * (1 - time_share) / time_share / a_step) : 1;
  }
  [[nodiscard]] bool sends_all() const {
    if (inputs_.config.compression_policy != "auto" || memory_[cost_at] <= 0) return false;
    const Price price = price_of(1);
    return steps_for_bytes(price) <= 1 && time_of(1, price) <= time_share;
  }
  [[nodiscard]] double loss_of(double steps, double keep, const Price& price) const {
    const double enough = steps > 1 || may_grow() ? shares.front() : enough_of_gradients;
    const double few = doublings(enough / std::min(keep, enough));
    const double drift = (may_grow() ? loss_of_growth : loss_of_drift) * doublings(steps / memory_[most_at]);
    const double speed = 1 - time_of(steps, price);
    double slowness = loss_of_slowness * doublings((1 - time_share) / speed);
    if (may_grow()) slowness += loss_of_crawling * doublings(least_speed / speed);
    return loss_of_step * std::max(0.0, steps - harmless_steps) + loss_of_halving * few + drift + slowness;
  }
  /// Nothing is known yet: little is sent on any link, and soon.
  [[nodiscard]] Choice first() const {
    const bool chooses = inputs_.config.compression_policy == "auto";
    return {std::min(first_steps, most_), chooses ? first_keep : inputs_.entered.keep_ratio, 0, true};
  }

  const Inputs& inputs_;
  const Budget& budget_;
  const double most_;
  const std::span<double> memory_;
};

std::string words_of(const Choice& choice, const Chooser& chooser, const Chooser::Price& price,
                     std::span<const double> memory) {
  const auto percent = [](double share) {
    return std::to_string(static_cast<int>(std::lround(100 * std::clamp(finite(share), 0.0, 1e6))));
  };
  const double stream = choice.steps * memory[step_bytes_at];
  std::string words = "agree every ";
  words += choice.steps == 1 ? "step" : std::to_string(static_cast<int>(choice.steps)) + " steps";
  words += choice.keep >= 1
               ? " on all parameters"
               : " on " + std::to_string(static_cast<int>(std::lround(1000 * choice.keep))) + " per mille";
  if (stream > 0) words += ": " + percent(price.bytes / stream) + " % of the rows' bytes";
  words += ", " + percent(chooser.time_of(choice.steps, price)) + " % of the time";
  if (memory[alike_at] > 0)
    words += std::string(", streams ") + (memory[alike_at] < differ ? "differ" : "are alike") + " (" +
             percent(memory[alike_at]) + " %)";
  return choice.fits ? words : words + "; the budget does not suffice";
}

void propose(const Inputs& inputs, std::span<double> memory, RoundPlan& plan) {
  if (inputs.table.size() < 2) {  // nobody to agree with
    plan.next.apart = false;
    return;
  }
  const Budget budget = *budget_of(setting(inputs.config, keys[0].name).text);
  const double most = setting(inputs.config, keys[1].name).number;
  if (rows_of(inputs.table) > 0) learn(inputs, budget, memory);
  follow_streams(most, memory);
  const Chooser chooser(inputs, budget, most, memory);
  const Choice best = chooser.best();
  Choice choice = best;
  if (chooser.may_stay(best)) choice = {memory[steps_at], memory[keep_at], 0, best.fits};
  choice.steps = std::clamp(finite(choice.steps), 1.0, longest);
  choice.keep = std::clamp(finite(choice.keep), shares.back() / 10, 1.0);
  const bool changes = choice.steps != memory[steps_at] || choice.keep != memory[keep_at];
  memory[settled_at] = changes ? 0 : memory[settled_at] + 1;
  memory[steps_at] = choice.steps;
  memory[keep_at] = choice.keep;
  const Chooser::Price price = chooser.price_of(choice.keep);
  memory[expected_at] = finite(price.seconds - memory[wait_at]);
  plan.next.own_steps = static_cast<std::uint32_t>(choice.steps);
  // Momentum of single streams that differ leads apart: gradients are summed, and the group has their
  // momentum.
  const bool alone = choice.steps == 1 && memory[alike_at] < alike && inputs.config.momentum_adds_up;
  if (alone) plan.next.apart = false;
  if (inputs.config.compression_policy == "auto") plan.next.keep_ratio = choice.keep;
  plan.why = words_of(choice, chooser, price, memory);
  // Numbers that are none would stay for ever, and comparisons with them are never true.
  for (double& value : memory) value = finite(value);
}

}  // namespace

extern const ControllerEntry when_auto;
const ControllerEntry when_auto{.role = Role::when,
                                .name = "auto",
                                .help = "as often, and on as much, as links, budget and streams allow",
                                .propose = &propose,
                                .keys = keys,
                                .fact_fields = measurements,
                                .memory = memory_size,
                                .figures = figures};

}  // namespace rivulet::sync::policy
