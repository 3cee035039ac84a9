#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "sync/coding/sketch.h"
#include "sync/controllers/overlap.h"
#include "sync/controllers/sync_choice.h"
#include "sync/policy/coherence.h"

namespace rivulet::sync::policy {
namespace {

// Chooses interval and keep ratio from measurements:
//
//   bytes   a synchronization sends c(keep) bytes; rows bring b bytes per step, of which a share may be spent
//   time    a synchronization takes A + B c(keep) seconds, fitted; it may take a small share of the time
//   alike   kappa = |sum rho D|^2 / sum rho |D|^2, of sketches of the deltas D, over its expected value if
//           all streams were alike, from the odd and the even steps of each device. Well below 1 the
//           streams differ, and devices would drift apart during local steps. So local steps increase
//           gradually.
//
// Among the choices within the limits, selects the one with the minimum loss, which grows with local steps
// and with each halving of the keep ratio (measured: bench/synchronizing, docs/adr/0030). Measurements
// describe the previous synchronization, so choices lag by one.

constexpr std::array keys{
    Key{.name = "sync.budget",
        .type = KeyType::text,
        .text = "\"1 of stream\"",
        .help = "with policy auto: maximum bytes that a device sends for synchronization, as a share of its "
                "group's record bytes or as bytes per time (\"0.1 of stream\", \"50 kB/s\", \"2 GB/month\")",
        .fits = [](std::string_view text) { return budget_of(text).has_value(); },
        .form = "a budget such as 0.1 of stream, 50 kB/s or 2 GB/month"},
    Key{.name = "sync.local_steps_max",
        .type = KeyType::integer,
        .text = "32",
        .help =
            "with policy auto: maximum local steps between synchronizations, unless the budget requires more",
        .least = 1,
        .most = 8000},
    overlap_key,
};

constexpr std::array measurements{
    FactField{"record_bytes", "record bytes of the device's rows"},
    FactField{"local_seconds", "seconds since the last synchronization"},
    FactField{"stepping_seconds", "duration of its local steps in seconds"},
    FactField{"sent_bytes", "bytes sent since its last facts"},
    FactField{"exchange_seconds", "seconds of the last exchange, without waiting for later devices"},
    FactField{"steps_signal", "inner product of the sums of its odd and its even steps"},
    FactField{"steps_noise", "a quarter of the squared distance between these sums"},
    FactField{"injected_bytes", "bytes of injected rows sent since its last facts"},
    FactField{"delta_sketch", "sketch of its delta", Sketch::small},
};
enum Field : std::size_t {
  record_bytes,
  local_seconds,
  stepping_seconds,
  sent_bytes,
  exchange_seconds,
  steps_signal,
  steps_noise,
  injected_bytes,
  delta_sketch,
};
constexpr double facts_bytes = facts_head_bytes + sizeof(float) * (delta_sketch + Sketch::small) + 64;

constexpr std::array figures{
    Figure{"coherence", "similarity of the devices' deltas: about 1 where streams are alike", alike_at},
    Figure{"exchange_seconds", "seconds of the last exchanges, without waiting for later devices",
           exchange_at},
    Figure{"expected_exchange_seconds", "predicted seconds of the next exchange", expected_at},
    Figure{"wait_seconds", "seconds that the devices waited for the last one, after they had computed",
           wait_at},
};

constexpr double streams_are_alike_again = 0.9;
constexpr double hard_credit_seconds = 5;  ///< maximum credit of a hard budget: its windows are 60 s long
constexpr double rows_ahead = 500;         ///< rows of a device whose budget is spent ahead
constexpr double rows_early = 5000;        ///< first rows of a device, in which it may spend ahead
constexpr double first_most = 32;
constexpr double few_rows = 512;
constexpr double many_rows = 4096;
constexpr double usual_weight = 0.3;  ///< maximum weight of one synchronization, which may be an outlier
constexpr double jump = 1.5;
constexpr double jump_deviations = 4;  ///< standard deviations of the mean loss
constexpr double recovery = 16;
constexpr double calm = 0.8;               ///< minimum loss to overlap, as a share of the usual loss
constexpr double worth_overlapping = 0.1;  ///< minimum share of the time that a synchronization takes
constexpr double least_keep = 0.0005;

double measured(const Inputs& inputs, std::size_t rank, std::size_t field) {
  return finite(inputs.table.facts[rank].measurements[inputs.measured + field]);
}
/// A measurement of bytes or seconds.
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

std::uint32_t steps_of(const Inputs& inputs, std::size_t rank) {
  return rank < inputs.table.sections.size()
             ? steps_behind(inputs.table.facts[rank], inputs.table.sections[rank])
             : 1;
}

std::vector<Delta> deltas_of(const Inputs& inputs) {
  std::vector<Delta> deltas;
  deltas.reserve(inputs.table.size());
  for (std::size_t rank = 0; rank < inputs.table.size(); ++rank) {
    const Facts& facts = inputs.table.facts[rank];
    const auto all = std::span(facts.measurements).subspan(inputs.measured);
    deltas.push_back({.rows = static_cast<double>(facts.rows),
                      .sketch = all.subspan(delta_sketch, Sketch::small),
                      .signal = all[steps_signal],
                      .noise = all[steps_noise],
                      .steps = static_cast<double>(steps_of(inputs, rank))});
  }
  return deltas;
}

void average(double& place, double now, double weight) {
  place = place == 0 ? now : place + weight * (now - place);
}

/// Updates the costs of steps, rows and exchanges.
void learn_costs(const Inputs& inputs, std::span<double> memory) {
  const auto n = static_cast<double>(inputs.table.size());
  const double turns = inputs.entered.steps();
  const double bytes = sum_of(inputs, record_bytes) / n;
  const double exchange = sum_of(inputs, exchange_seconds) / n;
  double sent = 0;
  double seconds = 0;  // longest time of a device
  double stepping = 0;
  for (std::size_t rank = 0; rank < inputs.table.size(); ++rank) {
    sent = std::max(sent, amount(inputs, rank, sent_bytes));
    seconds = std::max(seconds, amount(inputs, rank, local_seconds));
    stepping = std::max(stepping, amount(inputs, rank, stepping_seconds));
  }
  if (bytes > 0) average(memory[step_bytes_at], bytes / turns, 0.5);
  if (stepping > 0) average(memory[step_seconds_at], stepping / turns, 0.5);
  if (seconds > 0) {
    const double lost = seconds - sum_of(inputs, local_seconds) / n;
    average(memory[wait_at], lost * busy_share(inputs.table, seconds / turns), 0.2);
  }
  if (exchange > 0) average(memory[exchange_at], exchange, 0.5);
  if (inputs.entered.injected_per_row() > 0)
    average(memory[injected_at], sum_of(inputs, injected_bytes) / n, 0.5);
  const double seen = wire_bytes(sent, inputs.table.size());
  const double left = seen + unseen_bytes(inputs.entered.way, inputs.table.size());
  if (sent > 0 && exchange > 0) LinearFit(memory.subspan(cost_at)).add(left, exchange);
}

/// Spends part of a soft budget early, while the model learns most. This part is not recovered later. Returns
/// the bytes of this synchronization that count as spent ahead.
double spend_ahead(const Inputs& inputs, double may, double spent, bool begins, std::span<double> memory) {
  const double rows = rows_of(inputs.table) / static_cast<double>(inputs.table.size());
  const double all = rows > 0 ? finite(rows_ahead * may / rows) : 0;
  if (all <= 0) return 0;
  if (begins) memory[ahead_at] = 1;
  memory[ahead_at] = std::clamp(memory[ahead_at], 0.0, 1.0);
  const double now = std::clamp(spent - may, 0.0, memory[ahead_at] * all);
  memory[ahead_at] = std::clamp(memory[ahead_at] - now / all - rows / rows_early, 0.0, 1.0);
  return now;
}

/// Updates the balance of the budget. Rounds without rows also cost bytes.
void pay(const Inputs& inputs, const Budget& budget, bool begins, std::span<double> memory) {
  double sent = 0;
  double seconds = 0;
  for (std::size_t rank = 0; rank < inputs.table.size(); ++rank) {
    sent = std::max(sent, amount(inputs, rank, sent_bytes));
    seconds = std::max(seconds, amount(inputs, rank, local_seconds));
  }
  const auto n = static_cast<double>(inputs.table.size());
  seconds += sum_of(inputs, exchange_seconds) / n;
  const double bytes = sum_of(inputs, record_bytes) / n;
  const double may = budget.of_stream > 0 ? budget.of_stream * bytes : budget.bytes_per_second * seconds;
  const double of_a_step = budget.of_stream > 0 ? budget.of_stream * memory[step_bytes_at]
                                                : budget.bytes_per_second * memory[step_seconds_at];
  const double rate =
      memory[step_seconds_at] > 0 ? std::max(0.0, finite(of_a_step / memory[step_seconds_at])) : 0;
  double spent = wire_bytes(sent, inputs.table.size());
  if (budget.is_hard())
    spent += unseen_bytes(inputs.entered.way, inputs.table.size()) + standing_bytes_per_second * seconds;
  const double credit = budget.is_hard() ? hard_credit_seconds : balance_seconds;
  if (!budget.is_hard()) spent -= spend_ahead(inputs, may, spent, begins, memory);
  memory[balance_at] = std::clamp(memory[balance_at] + may - spent, -balance_seconds * rate, credit * rate);
}

/// Halves the local steps immediately if late deltas, or deltas of too many steps, have overshot.
void step_back(std::span<double> memory) {
  memory[most_at] = std::max(1.0, std::floor(memory[steps_at] / 2));
  memory[overshot_at] = recovery;
  memory[stable_at] = settling;
  Plateau(memory.subspan(plateau_at)).restart();
}

/// Whether a device has a delta that it cannot contribute.
bool has_exploded(const Inputs& inputs) {
  return inputs.entered.local && any_flag(inputs.table, flag_nonfinite);
}

void learn_loss(const Inputs& inputs, double rows, std::span<double> memory) {
  double loss = 0;
  for (const Facts& f : inputs.table.facts) loss += finite(f.loss_sum) / rows;
  memory[overshot_at] = std::max(0.0, memory[overshot_at] - 1);
  average(memory[loss_at], loss, std::min(1.0, rows / few_rows));
  const double usual = memory[usual_loss_at];
  const double noise = jump_deviations * std::sqrt(memory[loss_noise_at] / std::max(rows, few_rows));
  const bool jumps = usual > 0 && memory[loss_at] > usual * std::max(jump, 1 + noise) &&
                     memory[loss_at] > Plateau(memory.subspan(plateau_at)).nothing();
  if (!jumps) {
    average(memory[usual_loss_at], loss, std::min(usual_weight, rows / many_rows));
    if (const double variance = loss_variance(inputs.table, loss, usual); variance > 0)
      average(memory[loss_noise_at], variance, variance > memory[loss_noise_at] ? 0.2 : 0.05);
    return;
  }
  step_back(memory);
  memory[usual_loss_at] = memory[loss_at];
}

/// Adds the measurements since the last synchronization to the memory.
void learn(const Inputs& inputs, std::span<double> memory) {
  const double rows = rows_of(inputs.table);
  learn_costs(inputs, memory);
  learn_loss(inputs, rows, memory);
  double loss_sum = 0;
  for (const Facts& f : inputs.table.facts) loss_sum += finite(f.loss_sum);
  Plateau(memory.subspan(plateau_at)).add(loss_sum, rows, memory[loss_noise_at]);
  CoherenceFilter(memory.subspan(alike_at)).add(coherence(deltas_of(inputs)), inputs.entered.steps());
}

/// Late deltas are harmful while the model changes fast: while the loss still falls, or after a jump.
bool is_calm(std::span<const double> memory) {
  return memory[steps_at] > 0 && memory[usual_loss_at] > 0 &&
         memory[loss_at] > calm * memory[usual_loss_at] && memory[overshot_at] == 0;
}

/// Increases local steps gradually and cuts them immediately. `least`: devices that train on injected rows
/// make similar steps for a while, whatever their first deltas look like (measured: bench/synchronizing
/// skew).
void follow_streams(double least, double most, std::span<double> memory) {
  if (memory[most_at] == 0) memory[most_at] = std::min(first_most, most);
  memory[most_at] = std::max(memory[most_at], least);
  const CoherenceFilter streams(memory.subspan(alike_at));
  if (!streams.has_begun()) return;
  if (streams.below(streams_differ)) {
    const double part = streams.below(streams_differ / 2) ? 4 : 2;
    memory[most_at] = std::max(least, std::floor(std::min(memory[most_at], memory[steps_at]) / part));
    return;
  }
  const bool limits = memory[steps_at] >= memory[most_at] && memory[overshot_at] == 0;
  if (streams.alike() > streams_are_alike && limits && memory[stable_at] >= settling)
    memory[most_at] = std::min(most, 2 * memory[most_at]);
}

/// On a plateau the interval grows gradually to what the streams allow, and returns immediately when the loss
/// changes. Does nothing where streams differ or rows are injected: there, only synchronizations keep the
/// models together.
void rest(const Inputs& inputs, double most, std::span<double> memory) {
  const bool differ = CoherenceFilter(memory.subspan(alike_at)).below(streams_differ);
  if (!Plateau(memory.subspan(plateau_at)).reached() || differ || inputs.entered.injected_per_row() > 0) {
    memory[rest_at] = 0;
    return;
  }
  const double longest = std::max(1.0, std::min(most, memory[most_at]));
  if (memory[rest_at] == 0 || memory[stable_at] >= settling)
    memory[rest_at] = 2 * std::max(memory[rest_at], memory[steps_at]);
  memory[rest_at] = std::clamp(memory[rest_at], 1.0, longest);
}

/// Describes the streams for the user.
std::string words_of_streams(std::span<double> memory) {
  const CoherenceFilter streams(memory.subspan(alike_at));
  if (!streams.has_begun()) return {};
  if (!streams.below(streams_differ) && streams.all_is_noise()) return ", deltas do not exceed their noise";
  const std::string alike = std::to_string(std::lround(100 * std::clamp(streams.alike(), 0.0, 2.0)));
  return (streams.alike() < streams_differ ? ", streams differ (" : ", streams are alike (") + alike + " %)";
}

/// When streams differ, per-device momentum drives the models apart, so the group sums gradients and keeps
/// one momentum for the sum. Switching resets the momentum of all devices. So it has a hysteresis, and waits
/// until no device can be ahead by a step.
bool sums_gradients(const Inputs& inputs, std::span<const double> memory) {
  const double enough = inputs.entered.local ? streams_are_alike : streams_are_alike_again;
  return memory[steps_at] == 1 && memory[alike_at] < enough && inputs.config.momentum_adds_up &&
         !inputs.entered.overlaps();
}

void propose(const Inputs& inputs, std::span<double> memory, RoundPlan& plan) {
  if (inputs.table.size() < 2) {  // single device
    plan.next.local.reset();
    return;
  }
  const Budget budget = *budget_of(setting(inputs.config, keys[0].name).text);
  const double most = setting(inputs.config, keys[1].name).number;
  const bool begins = memory[step_bytes_at] == 0;
  if (rows_of(inputs.table) > 0) learn(inputs, memory);
  if (has_exploded(inputs) || any_flag(inputs.table, flag_changed)) {
    step_back(memory);
    CoherenceFilter(memory.subspan(alike_at)).begin_anew();
  }
  pay(inputs, budget, begins, memory);
  follow_streams(inputs.entered.injected_per_row() > 0 ? std::min(steps_with_injection, most) : 1, most,
                 memory);
  rest(inputs, most, memory);
  const Chooser chooser(inputs, budget, {most, facts_bytes}, memory);
  const Choice best = chooser.best();
  Choice choice = best;
  if (chooser.may_stay(best)) choice = {memory[steps_at], memory[keep_at], 0, best.fits};
  choice.steps = std::clamp(finite(choice.steps), 1.0, local_steps_of_budget_max);
  choice.keep = std::clamp(finite(choice.keep), least_keep, 1.0);
  const bool changes = choice.steps != memory[steps_at] || choice.keep != memory[keep_at];
  memory[stable_at] = changes ? 0 : memory[stable_at] + 1;
  memory[steps_at] = choice.steps;
  memory[keep_at] = choice.keep;
  const bool sums = sums_gradients(inputs, memory);
  const bool thin = sums && choice.keep < 1 && chooser.affords_mixture();
  const Chooser::Price price = thin ? chooser.price_of_mixture() : chooser.price_of(choice.keep);
  memory[expected_at] = finite(price.seconds - memory[wait_at]);
  const bool worth_it = is_calm(memory) && chooser.time_of(choice.steps, price) > worth_overlapping;
  const std::string& wanted = setting(inputs.config, overlap_key.name).text;
  const bool overlap = choice.steps > 1 && wanted != overlap_never && (worth_it || wanted == overlap_always);
  if (sums) plan.next.local.reset();
  if (plan.next.local)
    plan.next.local = LocalSchedule{.steps = static_cast<std::uint32_t>(choice.steps), .overlap = overlap};
  if (leaves_compression_to_when(inputs.config) && choice.keep < 1)
    compress_with(inputs.config, thin ? Chooser::mixture() : compressor_for(choice.keep), choice.keep,
                  plan.next);
  plan.why = chooser.words_of(
      choice, price,
      {.how = thin ? "low rank" : "", .overlap = overlap, .streams = words_of_streams(memory)});
  keep_finite(memory);
}

double steps_max_with_injection(const PolicyConfig& config) {
  return std::min(steps_with_injection, setting(config, keys[1].name).number);
}

bool overlaps(const PolicyConfig& config) {
  return setting(config, overlap_key.name).text != overlap_never;
}

}  // namespace

extern const ControllerEntry when_auto;
const ControllerEntry when_auto{.role = Role::when,
                                .name = "auto",
                                .help = "interval and keep ratio adapted to links, budget and streams",
                                .propose = &propose,
                                .keys = keys,
                                .fact_fields = measurements,
                                .memory = memory_size,
                                .figures = figures,
                                .contributes_deltas = [](const PolicyConfig&) { return true; },
                                .joint = true,
                                .plans_steps = true,
                                .steps_with_injection = &steps_max_with_injection,
                                .overlaps = &overlaps};

}  // namespace rivulet::sync::policy
