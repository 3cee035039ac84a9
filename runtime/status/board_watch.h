#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/clock.h"
#include "core/metrics.h"
#include "devices/sensors.h"
#include "runtime/process/agent.h"

namespace rivulet::runtime {

/// Reads the machine's sensors once a second into metrics: temperature, energy, load, frequency, memory,
/// throttling. A missing sensor has no series. If a sensor stops answering, its gauge is removed immediately,
/// and its counter after a few readings. Runs on its own thread, because a sensor read may block; no other
/// thread waits for it.
class BoardWatch final : public Agent {
 public:
  struct Parts {
    const Clock& clock;
    devices::Sensors sensors;
    MetricsSink& metrics;
  };
  explicit BoardWatch(Parts parts);
  [[nodiscard]] std::string_view name() const noexcept override { return "board"; }
  Turn step() override;

 private:
  using Series = std::pair<std::string, std::string>;  ///< metric, label value
  struct Label {
    std::string_view metric;
    std::string_view name;  ///< empty if there is no label
  };
  struct Counted {
    Label label;
    Counter* counter;
    double so_far;          ///< counter at the last reading, if the machine keeps its own
    TimePoint answered_at;  ///< time of the last report
  };
  void show(const Label& label, const std::string& value, double number);
  void show_throttle(const devices::ThrottleCount& throttle, TimePoint now);
  void show_power(const devices::RailPower& rail, double seconds, TimePoint now);
  Counted& note_answer(const Label& label, const std::string& value, double so_far, TimePoint now);
  void forget_the_silent();
  void forget_silent_counters(TimePoint now);

  Parts parts_;
  Counter& heat_errors_;
  Counter& power_errors_;
  Counter& gpu_errors_;
  std::map<Series, std::pair<Label, Gauge*>> shown_;
  std::set<Series> seen_;  ///< series seen in this step
  std::map<Series, Counted> counted_;
  std::optional<TimePoint> looked_at_;
  TimePoint next_{};
};

}  // namespace rivulet::runtime
