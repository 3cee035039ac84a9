#include "runtime/board_watch.h"

#include <utility>

namespace rivulet::runtime {
namespace {

constexpr Duration look_every = std::chrono::seconds(1);
// A rail may miss a look or two, and a counter that ends and begins again costs its rate a moment.
constexpr Duration rail_silent = std::chrono::seconds(5);

}  // namespace

BoardWatch::BoardWatch(Parts parts)
    : parts_(std::move(parts)),
      heat_errors_(parts_.metrics.counter("sensor_read_errors_total", {{"sensor", "heat"}})),
      power_errors_(parts_.metrics.counter("sensor_read_errors_total", {{"sensor", "power"}})),
      gpu_errors_(parts_.metrics.counter("sensor_read_errors_total", {{"sensor", "gpu"}})) {
  if (const std::string board = parts_.sensors.board(); !board.empty())
    parts_.metrics.gauge("board_info", {{"board", board}}).set(1);
}

Turn BoardWatch::step() {
  const TimePoint now = parts_.clock.now();
  if (now < next_) return {.wake_at = next_};
  const auto r = parts_.sensors.read();
  const double seconds = looked_at_ ? to_seconds(now - *looked_at_) : 0;
  for (const auto& zone : r.heat) show({"temperature_celsius", "zone"}, zone.zone, zone.celsius);
  for (const auto& rail : r.power) show_power(rail, seconds, now);
  for (const auto& gpu : r.gpus) {
    if (gpu.utilization) show({"gpu_utilization_ratio", "gpu"}, gpu.gpu, *gpu.utilization);
    if (gpu.hertz) show({"gpu_frequency_hertz", "gpu"}, gpu.gpu, *gpu.hertz);
  }
  if (r.cpu_hertz) show({"cpu_frequency_hertz", ""}, "", *r.cpu_hertz);
  if (r.memory) {
    show({"board_memory_total_bytes", ""}, "", r.memory->total_bytes);
    show({"board_memory_available_bytes", ""}, "", r.memory->available_bytes);
  }
  heat_errors_.add(static_cast<double>(r.heat_errors));
  power_errors_.add(static_cast<double>(r.power_errors));
  gpu_errors_.add(static_cast<double>(r.gpu_errors));
  forget_the_silent();
  forget_silent_rails(now);
  looked_at_ = now;
  next_ = now + look_every;
  return {.work = 1, .wake_at = next_};
}

void BoardWatch::show(const Label& label, const std::string& value, double number) {
  const Series series{std::string(label.metric), value};
  seen_.insert(series);
  auto at = shown_.find(series);
  if (at == shown_.end()) {
    Gauge& gauge = label.name.empty() ? parts_.metrics.gauge(label.metric)
                                      : parts_.metrics.gauge(label.metric, {{label.name, value}});
    at = shown_.emplace(series, std::pair{label, &gauge}).first;
  }
  at->second.second->set(number);
}

/// Watts times the time since the last look, or what the machine has counted since then.
void BoardWatch::show_power(const devices::RailPower& rail, double seconds, TimePoint now) {
  auto at = energy_.find(rail.rail);
  if (at == energy_.end()) {
    Counter& joules = parts_.metrics.counter("energy_joules_total", {{"rail", rail.rail}});
    at = energy_.emplace(rail.rail, Energy{&joules, rail.joules.value_or(0), now}).first;
  }
  Energy& energy = at->second;
  energy.heard = now;
  if (rail.watts && *rail.watts > 0) energy.joules->add(*rail.watts * seconds);
  if (!rail.joules) return;
  const double more = *rail.joules - energy.counted;
  const double wrapped = more + rail.joules_wrap;
  if (more >= 0)
    energy.joules->add(more);
  else if (wrapped >= 0)
    energy.joules->add(wrapped);
  energy.counted = *rail.joules;
}

/// A counter that stands still reads as a power of 0 W, which nobody has measured.
void BoardWatch::forget_silent_rails(TimePoint now) {
  std::erase_if(energy_, [&](const auto& rail) {
    if (now - rail.second.heard <= rail_silent) return false;
    parts_.metrics.remove("energy_joules_total", {{"rail", rail.first}});
    return true;
  });
}

void BoardWatch::forget_the_silent() {
  for (auto it = shown_.begin(); it != shown_.end();) {
    if (seen_.contains(it->first)) {
      ++it;
      continue;
    }
    const Label& label = it->second.first;
    if (label.name.empty())
      parts_.metrics.remove(label.metric);
    else
      parts_.metrics.remove(label.metric, {{label.name, it->first.second}});
    it = shown_.erase(it);
  }
  seen_.clear();
}

}  // namespace rivulet::runtime
