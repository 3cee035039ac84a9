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

/// Measures the machine once a second and reports it as metrics: heat, energy, load, frequency, memory, how
/// often it was throttled. A sensor that is not there has no series, and one that stops answering loses its
/// own, a counter after a few looks. Runs on a thread of its own, which nobody waits for: a sensor may take
/// as long as its chip likes.
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
  using Series = std::pair<std::string, std::string>;  ///< metric, value of its label
  struct Label {
    std::string_view metric;
    std::string_view name;  ///< empty: it has none
  };
  struct Counted {
    Label label;
    Counter* counter;
    double so_far;       ///< at the last look, where the machine counts itself
    TimePoint heard_at;  ///< when it reported something last
  };
  void show(const Label& label, const std::string& value, double number);
  void show_throttle(const devices::ThrottleCount& throttle, TimePoint now);
  void show_power(const devices::RailPower& rail, double seconds, TimePoint now);
  Counted& heard(const Label& label, const std::string& value, double so_far, TimePoint now);
  void forget_the_silent();
  void forget_silent_counters(TimePoint now);

  Parts parts_;
  Counter& heat_errors_;
  Counter& power_errors_;
  Counter& gpu_errors_;
  std::map<Series, std::pair<Label, Gauge*>> shown_;
  std::set<Series> seen_;  ///< by this step
  std::map<Series, Counted> counted_;
  std::optional<TimePoint> looked_at_;
  TimePoint next_{};
};

}  // namespace rivulet::runtime
