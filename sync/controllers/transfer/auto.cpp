#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "sync/controllers/injection.h"
#include "sync/controllers/skew.h"
#include "sync/policy/coherence.h"
#include "sync/policy/sync_cost.h"

namespace rivulet::sync::policy {
namespace {

// Devices whose labels or features differ drift apart during local steps. Either they synchronize after every
// step, or each also trains on a few injected rows of all others and may make a few local steps. The
// controller chooses the option that sends fewer bytes.

constexpr std::array keys{
    Key{.name = "inject.auto.share",
        .text = "0.25",
        .help = "with policy auto: share of injected rows in a batch; maximum 0.1 if only features differ",
        .least = 0,
        .most = 0.9},
    Key{.name = "inject.auto.skew",
        .text = "0.4",
        .help = "with policy auto: label skew above which devices send injected rows (0: equal label "
                "distributions, 1: no labels in common)",
        .least = 0,
        .most = 1},
    Key{.name = "inject.auto.features",
        .text = "0.5",
        .help = "with policy auto: between-device share of a feature's variance, above which devices send "
                "injected rows",
        .least = 0,
        .most = 1},
};

constexpr std::array measurements{
    FactField{"label_counts", "rows per label, by label modulo 16", label_bins},
    FactField{"record_bytes", "record bytes of the device's rows"},
    FactField{"feature_skew",
              "squared distance between its mean and the group's, in units of the variance, for the feature "
              "that differs most"},
};
enum Field : std::size_t { label_counts, record_bytes = label_bins, feature_skew };

enum Place : std::size_t { skew_at, on_at, row_bytes_at, features_at, memory_size };
constexpr std::array figures{
    Figure{"skew", "label skew between devices (0: equal label distributions, 1: no labels in common)",
           skew_at},
    Figure{"feature_skew", "between-device share of a feature's variance", features_at},
};

constexpr double remembered = 0.95;  ///< decay of label counts between two synchronizations
constexpr double stays_on = 0.7;     ///< part of the skew threshold below which sending stops
constexpr double few_rows = 30;      ///< mean rows per device before the skew is computed
constexpr double little_in_common = 0.6;
constexpr double share_for_features = 0.1;  ///< maximum share of injected rows in a batch if labels are alike
constexpr double newest_weight = 0.1;       ///< weight of a measurement in the mean feature skew
constexpr double local_steps_then = 4;      ///< local steps that injected rows allow: of policy auto of sync
constexpr double facts_about = 512;         ///< bytes
constexpr double usual_weight = 0.2;

double measured(const Inputs& inputs, std::size_t rank, std::size_t field) {
  return std::max(0.0, finite(inputs.table.facts[rank].measurements[inputs.measured + field]));
}

/// Label counts of each rank follow the other values of the memory.
void learn(const Inputs& inputs, std::span<double> memory) {
  const auto counts = memory.subspan(memory_size);
  double rows = 0;
  double bytes = 0;
  double between = 0;
  for (const Facts& facts : inputs.table.facts) rows += facts.rows;
  if (rows == 0) return;
  for (std::size_t rank = 0; rank < inputs.table.size(); ++rank) {
    bytes += measured(inputs, rank, record_bytes);
    between += inputs.table.facts[rank].rows / rows * std::min(1e3, measured(inputs, rank, feature_skew));
    for (std::size_t bin = 0; bin < label_bins; ++bin) {
      double& count = counts[rank * label_bins + bin];
      count = finite(remembered * count + measured(inputs, rank, label_counts + bin));
    }
  }
  double& usual = memory[row_bytes_at];
  usual = usual == 0 ? bytes / rows : usual + usual_weight * (bytes / rows - usual);
  memory[features_at] += newest_weight * (std::min(1.0, between) - memory[features_at]);
  double known = 0;
  for (const double count : counts) known += count;
  if (known >= few_rows * static_cast<double>(inputs.table.size())) memory[skew_at] = skew_of(counts);
}

/// Local steps per interval while rows are injected, if the controller of `when` chooses them.
std::optional<double> chosen_steps(const Inputs& inputs) {
  const ControllerEntry* when = controller_named(Role::when, inputs.config.sync_policy);
  if (when == nullptr || when->steps_with_injection == nullptr) return std::nullopt;
  return when->steps_with_injection(inputs.config);
}

/// Local steps per interval while rows are injected.
double steps_then(const Inputs& inputs, const Schedule& next) {
  if (const auto chosen = chosen_steps(inputs)) return *chosen;
  return next.steps();
}

/// Compares bytes per step: synchronizing after each step, or after several with injected rows.
bool saves_bytes(const Inputs& inputs, double injected, double row_bytes, const Schedule& next) {
  const std::size_t n = inputs.table.size();
  const double steps = steps_then(inputs, next);
  double rows = 0;
  for (const std::uint32_t of_rank : next.rows) rows = std::max<double>(rows, of_rank);
  const double synchronization = sync_bytes(inputs.config, n, next.way.keep_ratio, facts_about);
  const double copied = rows / (1 + injected) * injected * row_bytes;
  return steps > 1 && synchronization / steps + copied < synchronization;
}

/// Whether a value exceeds the key's threshold, with hysteresis.
bool exceeds(const Inputs& inputs, double measure, const Key& key, bool on) {
  return measure > setting(inputs.config, key.name).number * (on ? stays_on : 1);
}

bool wants(const Inputs& inputs, double injected, std::span<const double> memory, bool features,
           const Schedule& next) {
  const bool on = memory[on_at] > 0;
  // All parameters are sent after every step only where that costs almost nothing.
  const bool sends_all = leaves_compression_to_when(inputs.config) && next.way.keep_ratio >= 1;
  if (injected <= 0 || sends_all) return false;
  // Few local steps indicate drift. A small budget may require many local steps: then devices whose labels or
  // features differ also drift (measured for labels: bench/published c1-skew).
  const bool drifts = !chosen_steps(inputs) || next.steps() <= local_steps_then ||
                      memory[skew_at] > little_in_common || features;
  return (on || drifts) && saves_bytes(inputs, injected, memory[row_bytes_at], next);
}

std::string percent(double share) {
  return std::to_string(std::lround(100 * share)) + " %";
}

void propose(const Inputs& inputs, std::span<double> memory, RoundPlan& plan) {
  const std::size_t n = inputs.table.size();
  // Rows of a deferred round are announced again in the next round, so they are not counted here.
  if (plan.now.mode == Mode::gradients || plan.now.mode == Mode::delta) learn(inputs, memory);
  const bool was_on = memory[on_at] > 0;
  const bool labels = exceeds(inputs, memory[skew_at], keys[1], was_on);
  const bool features = exceeds(inputs, memory[features_at], keys[2], was_on);
  const double most = setting(inputs.config, keys[0].name).number;
  const double share = labels ? most : std::min(most, share_for_features);
  const double injected = share / (1 - share);
  const bool on = n > 1 && (labels || features) && wants(inputs, injected, memory, features, plan.next);
  memory[on_at] = on ? 1 : 0;
  keep_finite(memory);
  if (!on) return;
  inject_rows(inputs.config, std::vector<bool>(n, true), injected / static_cast<double>(n - 1), injected,
              plan.next);
  plan.why = (labels ? "label skew " + percent(memory[skew_at]) + ""
                     : percent(memory[features_at]) + " of a feature's variance lies between devices") +
             ": devices send each other injected rows";
}

}  // namespace

extern const ControllerEntry transfer_auto;
const ControllerEntry transfer_auto{
    .role = Role::transfer,
    .name = "auto",
    .help = "if labels or features differ between devices and injection reduces the bytes sent",
    .propose = &propose,
    .keys = keys,
    .fact_fields = measurements,
    .memory = memory_size,
    .figures = figures,
    .memory_per_rank = label_bins,
    .weighs_local_steps = true};

}  // namespace rivulet::sync::policy
