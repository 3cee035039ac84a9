#include "sync/policy/arbiter.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sync/policy/divergence.h"
#include "sync/policy/settling.h"
#include "sync/policy/sync_cost.h"

namespace rivulet::sync::policy {
namespace {

std::uint64_t total_rows(const FactsTable& table) {
  std::uint64_t n = 0;
  for (const auto& f : table.facts) n += f.rows;
  return n;
}

void set_weights(const FactsTable& table, RoundPlan& plan) {
  const auto total = static_cast<double>(total_rows(table));
  plan.now.weights.clear();
  for (const auto& f : table.facts)
    plan.now.weights.push_back(total > 0 ? static_cast<double>(f.rows) / total : 0.0);
}

Mode default_mode(const FactsTable& table) {
  if (total_rows(table) == 0) return Mode::idle;
  if (any_flag(table, flag_dry_run)) return Mode::skip;
  return any_flag(table, flag_local_steps) ? Mode::delta : Mode::gradients;
}

/// Time by which every device that is not late has arrived: local steps take their waits and the slowest
/// compute time, or a generous guess before that is measured.
Duration latest_of(const FactsTable& table, Duration wait, const LocalSchedule& local) {
  constexpr double unknown_step = 5;
  constexpr double longest_step = 3600;
  double slowest = 0;
  for (const Facts& f : table.facts) slowest = std::max(slowest, double{f.compute_seconds});
  slowest = slowest > 0 ? std::min(slowest, longest_step) : unknown_step;
  const Duration step = wait + from_seconds(slowest);
  const Duration steps = step * local.steps;
  return local.time > Duration(0) ? std::min(steps, local.time + step) : steps;
}

/// A group without rows backs off: the wait doubles up to idle_wait_max.
void back_off(const PolicyConfig& config, PolicyState& state, RoundPlan& plan) {
  if (plan.now.mode != Mode::idle) {
    state.idle_rounds = 0;
    return;
  }
  plan.next.rest = true;
  plan.why = "no device has rows";
  // Each local step may wait, so the limit applies to the whole interval.
  constexpr Duration long_enough = std::chrono::seconds(10);
  const Duration most = std::min(config.idle_wait_max, long_enough / plan.next.steps());
  Duration wait = config.max_wait;
  for (std::uint32_t i = 0; i < state.idle_rounds && wait < most; ++i) wait *= 2;
  plan.next.wait = std::max(std::min(wait, most), std::min(config.max_wait, plan.next.wait));
  ++state.idle_rounds;
}

/// A request from any device stops the group, in the same round everywhere.
bool reaches_limit(const FactsTable& table, Mode mode) {
  const bool applies = mode == Mode::gradients || mode == Mode::delta;
  const std::uint64_t rows = applies ? total_rows(table) : 0;
  return std::any_of(table.facts.begin(), table.facts.end(), [&](const Facts& f) {
    const bool by_step = f.stop_at_step > 0 && f.step + (applies ? 1 : 0) >= f.stop_at_step;
    return by_step || (f.stop_at_rows > 0 && f.agreed_rows + rows >= f.stop_at_rows);
  });
}

/// Whether a checkpoint is due: by the step clock, on request of a device, or before a device leaves.
bool requests_checkpoint(const FactsTable& table, const PolicyConfig& config, const RoundPlan& plan) {
  if (plan.now.stop || !plan.now.leaving.empty()) return true;
  // After all streams fall silent, the offsets of the last rows are committed only by a checkpoint.
  if (plan.now.mode == Mode::idle) return any_flag(table, flag_checkpoint);
  if (plan.now.mode != Mode::gradients && plan.now.mode != Mode::delta) return false;
  const std::uint64_t step = table.facts[0].step + 1;
  return any_flag(table, flag_checkpoint) ||
         (config.checkpoint_rounds > 0 && step % config.checkpoint_rounds == 0);
}

/// Exchange of contributions if no controller decides.
void schedule_exchange(const PolicyConfig& config, Schedule& next) {
  next.way.collective = chooses_collective(config) ? std::string(gathers_all().name) : config.collective;
  next.way.payload_bytes = config.contribution_bytes;
}

/// Replaces a collective that cannot sum the compressor's slots.
void fit_collective(Way& next) {
  const AggregationEntry* how = collective_named(next.collective);
  if (how == nullptr || how->fits == nullptr) return;
  const CompressorEntry* small = compressor_named(next.compressor);
  if (small == nullptr) {  // a compressor of a third party
    if (how->fits(usual_compressor(SlotKind::whole))) next.collective = gathers_all().name;
  } else if (!how->fits(*small)) {
    next.collective = stand_in_for(*small).name;
  }
}

std::vector<double>* memory_of(PolicyState& state, const ControllerEntry& controller) {
  return const_cast<std::vector<double>*>(policy::memory_of(std::as_const(state), controller));
}

ControllerMemory fresh_memory(const std::string& name, std::size_t of_group, std::size_t of_device,
                              std::span<const std::string> members) {
  ControllerMemory fresh{name, std::vector<double>(of_group + of_device * members.size())};
  if (of_device > 0) fresh.devices.assign(members.begin(), members.end());
  return fresh;
}

/// The agreed memory in the order of these members. New devices start at 0, and so does everything if the
/// size differs: a different version wrote it.
ControllerMemory remembered(const ControllerMemory& agreed, std::size_t of_group, std::size_t of_device,
                            std::span<const std::string> members) {
  ControllerMemory own = fresh_memory(agreed.name, of_group, of_device, members);
  if (agreed.values.size() != of_group + of_device * agreed.devices.size()) return own;
  const auto group = std::span(agreed.values).first(of_group);
  std::ranges::copy(group, own.values.begin());
  for (std::size_t rank = 0; rank < own.devices.size(); ++rank) {
    const auto known = std::ranges::find(agreed.devices, own.devices[rank]);
    if (known == agreed.devices.end()) continue;
    const auto at = static_cast<std::size_t>(known - agreed.devices.begin());
    std::copy_n(agreed.values.begin() + static_cast<std::ptrdiff_t>(of_group + at * of_device), of_device,
                own.values.begin() + static_cast<std::ptrdiff_t>(of_group + rank * of_device));
  }
  return own;
}

/// Memory of a part that is not a controller.
std::span<double> memory_named(PolicyState& state, std::string_view name) {
  const auto own = std::ranges::find(state.memory, name, &ControllerMemory::name);
  return own != state.memory.end() ? std::span<double>(own->values) : std::span<double>();
}
std::span<double> settling_memory(PolicyState& state) {
  return memory_named(state, Settling::name);
}

/// Calls all controllers in the order of their roles. Slow loops that must wait get Inputs::settling.
void ask(const FactsTable& table, const PolicyConfig& config, const Controllers& controllers,
         PolicyState& state, RoundPlan& plan) {
  Settling settling(controllers, config, settling_memory(state));
  Inputs inputs{table, config, state.last.next, state.round};
  for (const ControllerEntry* controller : controllers) {
    std::vector<double>* memory = memory_of(state, *controller);
    const auto numbers = memory != nullptr ? std::span<double>(*memory) : std::span<double>();
    const std::size_t place = controller->slow.changes_at;
    const double changes = place < numbers.size() ? numbers[place] : 0;
    const std::string said = std::exchange(plan.why, {});
    inputs.settling = inputs.entered.freeze || settling.waits(*controller);
    controller->propose(inputs, numbers, plan);
    if (!said.empty()) plan.why = plan.why.empty() ? said : said + "; " + plan.why;
    if (place < numbers.size() && numbers[place] != changes) settling.has_changed(*controller);
    inputs.measured += measurements_of({controller});
  }
  settling.end_round(plan.now.mode != Mode::idle && plan.now.mode != Mode::defer);
  if (!settling.changes().empty())
    plan.why += "; " + settling.changes() + " has changed: other controllers wait for " +
                std::to_string(static_cast<std::uint64_t>(settling.window())) + " rounds";
}

/// A view begins with a synchronization after one step, regardless of the interval before. So users see
/// soon that the group works again.
void begin_short(Schedule& next) {
  if (next.local) next.local.emplace();
}

/// The members of a view are known before its first facts, which may already carry local steps of a lost
/// view. All enter immediately, regardless of what a controller of `when` proposes, and no controller adapts
/// to it.
void choose_exchange(std::size_t world, const PolicyConfig& config, const Controllers& controllers,
                     PolicyState& state) {
  RoundPlan& plan = state.last;
  FactsTable table;
  table.facts.resize(world);
  for (Facts& facts : table.facts) facts.measurements.resize(measurements_of(controllers));
  Inputs inputs{table, config, plan.next};
  for (const ControllerEntry* controller : controllers) {
    const auto* agreed = memory_of(state, *controller);
    std::vector<double> memory = agreed != nullptr ? *agreed : std::vector<double>();
    const bool asked = controller->role == Role::when || controller->role == Role::collective ||
                       controller->role == Role::compression;
    if (asked) controller->propose(inputs, memory, plan);
    inputs.measured += measurements_of({controller});
  }
  begin_short(plan.next);
  plan.now.way.reset();
  fit_collective(plan.next.way);
}

/// Adapts the way of a gated round to the mode. The residual of a leaving device would be lost, so its last
/// round sends everything.
void fit_way(const PolicyConfig& config, const Schedule& entered, RoundPlan& plan) {
  const bool exchanges = plan.now.mode == Mode::gradients || plan.now.mode == Mode::delta;
  if (!entered.gated || !exchanges) {
    plan.now.way.reset();
    return;
  }
  if (!plan.now.leaving.empty()) plan.now.way = way_of(config, plan.now.weights.size(), compressor_for(1), 1);
  if (plan.now.way) fit_collective(*plan.now.way);
}

/// Whether the next exchange should be dense before a device leaves: the group continues without it, and its
/// residual would be lost. Not if that is likely to take longer than the device may.
bool needs_flush(const FactsTable& table, const PolicyConfig& config, const Schedule& entered) {
  if (!config.changes_size || entered.flush || entered.gated) return false;
  const auto leaves = [](const Facts& f) { return (f.flags & flag_leaving) != 0; };
  if (std::ranges::all_of(table.facts, leaves)) return false;
  const CompressorEntry* compressor = compressor_named(entered.way.compressor);
  const bool keeps = compressor != nullptr && compressor->keeps_residual;
  const bool any = std::ranges::any_of(
      table.facts, [&](const Facts& f) { return leaves(f) && (keeps || (f.flags & flag_residual) != 0); });
  // The times of all others include waiting for the last device that entered.
  double seconds = table.facts.front().sync_seconds;
  for (const Facts& f : table.facts) seconds = std::min(seconds, double{f.sync_seconds});
  const double sent = std::max<double>(1, static_cast<double>(entered.way.payload_bytes));
  constexpr double longest = 5;
  return any && seconds / sent * static_cast<double>(config.contribution_bytes) <= longest;
}

/// All devices enter as soon as they have rows, since a round without rows sends nothing, and send
/// everything.
void schedule_flush(const PolicyConfig& config, std::size_t world, RoundPlan& plan) {
  Schedule& next = plan.next;
  next.way = way_of(config, world, compressor_for(1), 1);
  fit_collective(next.way);
  next.wait = std::min(next.wait, config.max_wait);
  next.rest = false;
  next.gated = false;
  next.freeze = true;
  next.flush = true;
  next.injection.reset();
  begin_short(next);
  plan.why += "; a device leaves after the next exchange, which is dense";
}

/// A plan changes either compressor or collective, and neither while they are measured.
void finish_exchange(const Schedule& entered, RoundPlan& plan) {
  Way& next = plan.next.way;
  const Way& now = entered.way;
  const bool compression = next.compressor != now.compressor || next.keep_ratio != now.keep_ratio;
  const bool collective = next.collective != now.collective;
  if (!compression && !collective) return;
  if (entered.freeze)
    next = now;
  else if (compression && collective)
    next.collective = now.collective;
}

}  // namespace

RoundPlan plan(const FactsTable& table, const PolicyConfig& config, const Controllers& controllers,
               PolicyState& state) {
  RoundPlan plan;
  plan.now.mode = default_mode(table);
  schedule_exchange(config, plan.next);
  if (exchanges_deltas(config, controllers)) plan.next.local.emplace();
  plan.next.rows.assign(table.size(), 0);
  plan.next.wait = config.max_wait;
  const bool flush = needs_flush(table, config, state.last.next);
  for (std::uint32_t rank = 0; rank < table.size() && !flush; ++rank)
    if ((table.facts[rank].flags & flag_leaving) != 0) plan.now.leaving.push_back(rank);
  set_weights(table, plan);
  ask(table, config, controllers, state, plan);
  Divergence divergence(memory_named(state, Divergence::name));
  plan.now.learning_rate_factor *= divergence.learning_rate_factor();
  const bool nothing_yet = plan.now.mode == Mode::idle && state.idle_rounds == state.round;
  if (nothing_yet) begin_short(plan.next);
  finish_exchange(state.last.next, plan);
  fit_collective(plan.next.way);
  fit_way(config, state.last.next, plan);
  back_off(config, state, plan);
  if (flush) schedule_flush(config, table.size(), plan);
  if (plan.next.local) plan.next.local->latest = latest_of(table, plan.next.wait, *plan.next.local);
  plan.now.stop = any_flag(table, flag_stop) || reaches_limit(table, plan.now.mode);
  plan.now.regroup = any_flag(table, flag_joiner);
  plan.now.checkpoint = requests_checkpoint(table, config, plan);
  divergence.decide(table, state.view, plan);
  ++state.round;
  state.last = plan;
  state.table_hash = hash_of(table);
  return plan;
}

PolicyState first_state(std::span<const std::string> members, const PolicyConfig& config,
                        const Controllers& controllers, std::vector<ControllerMemory> memory,
                        std::uint64_t view) {
  const std::size_t world = members.size();
  PolicyState state;
  state.view = view;
  RoundPlan& plan = state.last;
  plan.next.rows.assign(world, 0);
  plan.now.weights.assign(world, 0.0);
  schedule_exchange(config, plan.next);
  plan.next.wait = config.tick;
  plan.next.rest = true;
  const auto remember = [&](const std::string& name, std::size_t of_group, std::size_t of_device = 0) {
    if (of_group + of_device == 0) return;
    const auto agreed = std::ranges::find(memory, name, &ControllerMemory::name);
    state.memory.push_back(agreed == memory.end() ? fresh_memory(name, of_group, of_device, members)
                                                  : remembered(*agreed, of_group, of_device, members));
  };
  for (const ControllerEntry* controller : controllers)
    remember(name_of(*controller), controller->memory, controller->memory_per_rank);
  if (Settling::is_needed(controllers, config)) {
    remember(std::string(Settling::name), Settling::numbers);
    ControllerMemory& settling = state.memory.back();
    settling.devices.assign(members.begin(), members.end());
    const auto agreed = std::ranges::find(memory, settling.name, &ControllerMemory::name);
    const bool same_members = agreed != memory.end() && agreed->devices == settling.devices;
    if (!same_members) Settling(controllers, config, settling.values).members_changed();
  }
  if (config.on_divergence == "roll_back") {
    remember(std::string(Divergence::name), Divergence::numbers);
    if (const auto numbers = memory_named(state, Divergence::name); !Divergence::fits(numbers))
      std::ranges::fill(numbers, 0.0);
  }
  plan.now.learning_rate_factor = Divergence(memory_named(state, Divergence::name)).learning_rate_factor();
  choose_exchange(world, config, controllers, state);
  plan.why = "first round: rates are not known yet";
  return state;
}

Disagreement digest_disagreement(const FactsTable& table, std::span<const std::string> ids) {
  std::map<std::string, std::vector<std::uint32_t>> holders;  // digest -> ranks
  for (std::uint32_t rank = 0; rank < table.size(); ++rank)
    if ((table.facts[rank].flags & flag_digest) != 0) holders[table.facts[rank].digest.hex()].push_back(rank);
  if (holders.size() <= 1) return {};
  auto largest = std::max_element(holders.begin(), holders.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
  const bool majority = 2 * largest->second.size() > table.size();
  Disagreement found;
  found.text = "state differs between devices before round " + std::to_string(table.facts[0].round) + ":";
  for (const auto& [hex, ranks] : holders) {
    if (majority && hex == largest->first) continue;
    for (auto rank : ranks) found.text += " " + std::string(ids[rank]) + " holds " + hex.substr(0, 16) + ";";
    if (majority) found.minority.insert(found.minority.end(), ranks.begin(), ranks.end());
  }
  std::ranges::sort(found.minority);
  if (majority)
    found.text +=
        " the other " + std::to_string(largest->second.size()) + " hold " + largest->first.substr(0, 16);
  return found;
}

}  // namespace rivulet::sync::policy
