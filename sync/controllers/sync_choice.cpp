#include "sync/controllers/sync_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sync/policy/coherence.h"

namespace rivulet::sync::policy {
namespace {

constexpr double time_share = 0.05;  ///< share of the time that synchronizations may take
// Loss of a choice, in points of accuracy.
constexpr double loss_of_step = 0.04;  ///< per local step beyond the first four
constexpr double loss_of_halving = 0.48;
constexpr double enough_of_gradients = 0.02;  ///< higher keep ratios of gradients learn no more
constexpr double loss_of_drift = 4;           ///< per doubling of local steps beyond what the streams allow
constexpr double loss_of_growth = 1;          ///< the same, while streams are alike
constexpr double loss_of_slowness = 1.5;      ///< per halving of the rows trained per second
constexpr double loss_of_crawling = 4;        ///< per halving of the training speed below least_speed
constexpr double least_speed = 0.4;
constexpr double first_steps =
    4;  ///< low: devices with different streams drift apart before they are measured
constexpr double first_keep = 0.02;
constexpr double harmless_steps = 4;
constexpr double eager = 2;  ///< maximum initial spending rate of a soft budget, as a multiple of its rate
constexpr std::array shares{0.05, 0.03, 0.02, 0.01, 0.005};

std::string percent(double share) {
  return std::to_string(static_cast<int>(std::lround(100 * std::clamp(finite(share), 0.0, 1e6))));
}

/// 0.005 -> "0.5", 0.05 -> "5".
std::string percent_of_few(double share) {
  const long tenths = std::lround(1000 * share);
  const std::string whole = std::to_string(tenths / 10);
  return tenths % 10 == 0 ? whole : whole + "." + std::to_string(tenths % 10);
}

}  // namespace

Chooser::Price Chooser::price_of(double keep) const {
  return price_of(way_of(inputs_.config, inputs_.table.size(), compressor_for(keep), keep));
}

Chooser::Price Chooser::price_of(const Way& way) const {
  const double injected = injects() ? memory_[injected_at] : 0;
  const double bytes = injected + sync_bytes(way, inputs_.table.size(), limits_.facts_bytes);
  LinearFit::Memory cost{};
  std::ranges::copy(memory_.subspan(cost_at, cost.size()), cost.begin());
  const bool hard = budget_.is_hard();
  const double unseen = hard ? 0 : unseen_bytes(way, inputs_.table.size());
  return {bytes, bytes - unseen, memory_[wait_at] + LinearFit(cost).seconds(bytes)};
}

double Chooser::time_of(double steps, const Price& price) const {
  if (price.seconds <= 0) return 0;
  return price.seconds / (price.seconds + steps * memory_[step_seconds_at]);
}

Choice Chooser::with(double keep) const {
  const Price price = price_of(keep);
  const double for_bytes = steps_for_bytes(price);
  // The time share never demands more local steps than the streams allow. Only the budget does.
  const double for_time = std::min({steps_for_time(price), limits_.most, memory_[most_at]});
  // With similar streams, a few local steps learn more than the same number of sums (measured:
  // bench/synchronizing).
  const double least = may_grow() || injects() ? std::min(harmless_steps, limits_.most) : 1;
  const double steps =
      std::clamp(std::max({for_bytes, for_time, least, memory_[rest_at]}), 1.0, local_steps_of_budget_max);
  return {steps, keep, loss_of(steps, keep, price), for_bytes <= local_steps_of_budget_max};
}

Choice Chooser::best() const {
  if (memory_[step_bytes_at] == 0) return first();
  if (!leaves_compression_to_when(inputs_.config)) return with(inputs_.entered.way.keep_ratio);
  if (is_tiny()) return with(1);
  if (sends_all()) return {1, 1, 0, true};
  // On a plateau the keep ratio is never raised.
  const double most = rests() ? std::max(memory_[keep_at], shares.back()) : shares.front();
  Choice best{.loss = std::numeric_limits<double>::infinity()};
  for (const double keep : shares)
    if (const Choice other = keep <= most ? with(keep) : best; other.loss <= best.loss) best = other;
  return best;
}

bool Chooser::may_stay(const Choice& better) const {
  const double steps = memory_[steps_at];
  const double keep = memory_[keep_at];
  if (steps < std::max(1.0, memory_[rest_at]) || (keep >= 1) != (better.keep >= 1)) return false;
  const Price price = price_of(keep);
  const bool in_time =
      time_of(steps, price) < 1.25 * time_share || steps >= std::min(limits_.most, memory_[most_at]);
  if (steps_for_bytes(price) > steps || !in_time) return false;
  return memory_[stable_at] < settling || loss_of(steps, keep, price) < better.loss + 0.1;
}

bool Chooser::injects() const {
  return inputs_.entered.injected_per_row() > 0;
}

bool Chooser::rests() const {
  return memory_[rest_at] > 0;
}

bool Chooser::may_grow() const {
  return memory_[alike_at] > streams_are_alike && memory_[overshot_at] == 0;
}

double Chooser::steps_for_bytes(const Price& price, Spending spending) const {
  const double a_step = budget_.of_stream > 0 ? budget_.of_stream * memory_[step_bytes_at]
                                              : budget_.bytes_per_second * memory_[step_seconds_at];
  // A surplus or deficit is spent or recovered gradually.
  const double rate = memory_[step_seconds_at] > 0 ? a_step / memory_[step_seconds_at] : 0;
  double back = rate > 0 ? std::clamp(memory_[balance_at] / (balance_seconds * rate), -0.5, 0.5) : 0;
  // With similar streams, devices learn as much from fewer synchronizations. So the budget is spent ahead
  // only if streams differ.
  const bool differ = memory_[alike_variance_at] > 0 && memory_[alike_at] < streams_differ;
  if (spending == Spending::ahead && differ)
    back = std::min(eager, back + eager * std::clamp(memory_[ahead_at], 0.0, 1.0));
  if (a_step <= 0) return 1;
  const double standing = budget_.is_hard() ? standing_bytes_per_second * memory_[step_seconds_at] : 0;
  const double left = a_step * (1 + back) - standing;
  return left > 0 ? std::ceil(price.counted / left) : std::numeric_limits<double>::infinity();
}

double Chooser::steps_for_time(const Price& price) const {
  const double a_step = memory_[step_seconds_at];
  if (a_step <= 0) return 1;
  return std::ceil(price.seconds * (1 - time_share) / time_share / a_step);
}

bool Chooser::is_tiny() const {
  return 2 * static_cast<double>(inputs_.config.contribution_bytes) <= limits_.facts_bytes;
}

bool Chooser::sends_all() const {
  if (memory_[cost_at] <= 0 || rests()) return false;
  const Price price = price_of(1);
  return steps_for_bytes(price, Spending::usual) <= 1 && time_of(1, price) <= time_share;
}

Chooser::Price Chooser::price_of_mixture() const {
  return price_of(way_of(inputs_.config, inputs_.table.size(), mixture(), 1));
}

std::string_view Chooser::mixture() {
  return usual_compressor(SlotKind::mixture).name;
}

bool Chooser::affords_mixture() const {
  if (!leaves_compression_to_when(inputs_.config) || injects()) return false;
  const Price price = price_of_mixture();
  const double slack = inputs_.entered.way.compressor == mixture() ? 1.2 : 1;
  const double most_seconds = slack * time_share / (1 - time_share) * memory_[step_seconds_at];
  return steps_for_bytes({price.bytes / slack, price.counted / slack, 0}, Spending::usual) <= 1 &&
         price.seconds <= most_seconds;
}

double Chooser::loss_of(double steps, double keep, const Price& price) const {
  const double enough = steps > 1 || may_grow() ? shares.front() : enough_of_gradients;
  const double few = doublings(enough / std::min(keep, enough));
  // Injected rows keep devices together: ten steps cost one point more than four (measured:
  // bench/synchronizing skew, topk 5 %).
  const double apart = may_grow() || injects() ? loss_of_growth : loss_of_drift;
  const double drift = apart * doublings(steps / memory_[most_at]);
  const double speed = 1 - time_of(steps, price);
  double slowness = loss_of_slowness * doublings((1 - time_share) / speed);
  if (may_grow()) slowness += loss_of_crawling * doublings(least_speed / speed);
  return loss_of_step * std::max(0.0, steps - harmless_steps) + loss_of_halving * few + drift + slowness;
}

/// Before any measurement: small and early contributions, on any link.
Choice Chooser::first() const {
  const bool chooses = leaves_compression_to_when(inputs_.config);
  return {std::min(first_steps, limits_.most), chooses ? first_keep : inputs_.entered.way.keep_ratio, 0,
          true};
}

std::string Chooser::words_of(const Choice& choice, const Price& price, const Words& besides) const {
  const double stream = choice.steps * memory_[step_bytes_at];
  std::string words = "synchronize every ";
  words += choice.steps == 1 ? "step" : std::to_string(static_cast<int>(choice.steps)) + " steps";
  if (!besides.how.empty())
    words += ", all parameters, " + std::string(besides.how);
  else if (choice.keep >= 1)
    words += ", all parameters";
  else
    words += ", " + percent_of_few(choice.keep) + " % of the parameters";
  if (stream > 0) words += ": " + percent(price.bytes / stream) + " % of the rows' bytes";
  words += ", " + percent(time_of(choice.steps, price)) + " % of wall time";
  if (besides.overlap) words += ", overlapped with local steps";
  words += besides.streams;
  if (rests()) words += ", the loss no longer falls";
  return choice.fits ? words : words + "; the budget is too small";
}

}  // namespace rivulet::sync::policy
