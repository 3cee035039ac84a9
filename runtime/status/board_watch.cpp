#include "runtime/status/board_watch.h"

#include <algorithm>
#include <utility>

namespace rivulet::runtime {
namespace {

constexpr Duration look_every = std::chrono::seconds(1);
// A sensor may miss a reading or two, and recreating a counter breaks its rate briefly.
constexpr Duration counter_silent = std::chrono::seconds(5);

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
  for (const auto& throttle : r.throttles) show_throttle(throttle, now);
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
  forget_silent_counters(now);
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

/// Finds the counter of a reported value; creates it at the first value.
BoardWatch::Counted& BoardWatch::note_answer(const Label& label, const std::string& value, double so_far,
                                             TimePoint now) {
  const Series series{std::string(label.metric), value};
  auto at = counted_.find(series);
  if (at == counted_.end()) {
    Counter& counter = parts_.metrics.counter(label.metric, {{label.name, value}});
    at = counted_.emplace(series, Counted{label, &counter, so_far, now}).first;
  }
  at->second.answered_at = now;
  return at->second;
}

/// Adds watts × time since the last reading, or the growth of the machine's own energy counter.
void BoardWatch::show_power(const devices::RailPower& rail, double seconds, TimePoint now) {
  Counted& energy = note_answer({"energy_joules_total", "rail"}, rail.rail, rail.joules.value_or(0), now);
  if (rail.watts && *rail.watts > 0) energy.counter->add(*rail.watts * seconds);
  if (!rail.joules) return;
  const double more = *rail.joules - energy.so_far;
  const double wrapped = more + rail.joules_wrap;
  if (more >= 0)
    energy.counter->add(more);
  else if (wrapped >= 0)
    energy.counter->add(wrapped);
  energy.so_far = *rail.joules;
}

void BoardWatch::show_throttle(const devices::ThrottleCount& throttle, TimePoint now) {
  Counted& events = note_answer({"throttle_events_total", "by"}, throttle.by, throttle.events, now);
  events.counter->add(std::max(throttle.events - events.so_far, 0.0));
  events.so_far = throttle.events;
}

/// Removes silent counters: a frozen counter would be read as 0 W or as no throttling, which was not
/// measured.
void BoardWatch::forget_silent_counters(TimePoint now) {
  std::erase_if(counted_, [&](const auto& one) {
    const auto& [series, counted] = one;
    if (now - counted.answered_at <= counter_silent) return false;
    parts_.metrics.remove(counted.label.metric, {{counted.label.name, series.second}});
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
