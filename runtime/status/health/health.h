#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rivulet::runtime {

/// How severely a condition limits the device.
enum class Grade : std::uint8_t {
  waits,     ///< not ready: waits for a peer or a broker, e.g. while the group forms
  useless,   ///< not ready: produces no useful result until an operator acts
  impaired,  ///< ready, but part of its work is not done
};
std::string_view name_of(Grade grade) noexcept;

/// A condition that currently holds (conditions.h lists all).
struct Finding {
  std::string_view condition;
  Grade grade = Grade::useless;
  std::string phrase;  ///< names the cause: "topic "mnist" is gone"
};

/// Health of a device, as shown by /readyz, the page, `status`, metrics and alerts. Plain values.
struct Health {
  bool judged = false;            ///< false if not evaluated yet
  std::vector<Finding> findings;  ///< in the order of conditions()

  [[nodiscard]] bool ready() const noexcept;
  /// Returns the joined phrases of the findings that make the device not ready; empty if it is ready.
  [[nodiscard]] std::string why_not() const;
};

/// Constant properties of a device that the health check needs.
struct HealthSetup {
  bool steps_in_time = true;    ///< false if training time is unpredictable, as with a fixed batch
  std::size_t batch_least = 1;  ///< minimum number of rows in a step
};

}  // namespace rivulet::runtime
