#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rivulet::runtime {

/// How much of a device's use a condition takes.
enum class Grade : std::uint8_t {
  waits,     ///< not ready until somebody comes or answers, as while the group forms
  useless,   ///< not ready: it runs, and nothing useful comes of it until somebody acts
  impaired,  ///< ready, but a part of its work is not done
};
std::string_view name_of(Grade grade) noexcept;

/// A condition that holds now (conditions.h has them all).
struct Finding {
  std::string_view condition;
  Grade grade = Grade::useless;
  std::string phrase;  ///< names the cause: "topic "mnist" is gone"
};

/// What a device knows about its own use, as /readyz, the page, `status`, metrics and alerts have it. Plain
/// values.
struct Health {
  bool judged = false;            ///< false: nobody has looked yet
  std::vector<Finding> findings;  ///< in the order of conditions()

  [[nodiscard]] bool ready() const noexcept;
  /// The phrases of what makes it not ready, one after the other; empty: it is.
  [[nodiscard]] std::string why_not() const;
};

/// What is known of a device before it is judged.
struct HealthSetup {
  bool steps_in_time = true;    ///< false: when rows are trained is not known, as where a fixed batch waits
  std::size_t batch_least = 1;  ///< rows that a step waits for
};

}  // namespace rivulet::runtime
