#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sync/policy/controller.h"

/// Slow loops (SlowLoop) take turns: each measures what the others change. Pure.
namespace rivulet::sync::policy {

/// Whose change counts more: it is made whatever settles, and those below wait until it has settled.
enum class Precedence : std::uint8_t {
  none,
  exchange,       ///< when, transfer, compression, collective
  batch,          ///< rows of steps
  membership,     ///< another view; what its devices have room for is part of that
  learning_rate,  ///< its schedule has fallen: gradients jump, and all wait
};
Precedence precedence_of(Role role) noexcept;

/// After each change a window of twice the longest half-life among the job's slow loops, counted in rounds
/// that bring rows. In it the loop that made the change, and those of higher precedence, may change again;
/// the others wait. If windows follow each other without end, each loop in turn has one of its own after four
/// of them, in which all others wait.
class Settling {
 public:
  static constexpr std::string_view name = "settling";  ///< of its memory, among the controllers'
  static constexpr std::size_t numbers = 5;

  /// A group without slow loops has no memory of them.
  static bool is_needed(const Controllers& controllers, const PolicyConfig& config);

  /// `memory`: [numbers], 0 at first; or empty: nobody ever waits.
  Settling(const Controllers& controllers, const PolicyConfig& config, std::span<double> memory);

  /// A view begins: one behind another if rounds were counted before.
  void begin_view();
  [[nodiscard]] bool waits(const ControllerEntry& controller) const;
  void has_changed(const ControllerEntry& controller);
  /// After controllers were asked. `counts`: it brought rows.
  void end_round(bool counts);
  /// What has changed in this round, for people; empty: nothing that others wait for.
  [[nodiscard]] const std::string& said() const { return said_; }
  /// In rounds; 0: there is no slow loop.
  [[nodiscard]] double window() const { return window_; }

 private:
  void open(Precedence by, double who, std::string what);
  [[nodiscard]] const ControllerEntry* whose_turn() const;

  const Controllers& controllers_;
  std::span<double> memory_;
  Controllers loops_;  ///< the slow ones
  double window_ = 0;
  std::string said_;
};

}  // namespace rivulet::sync::policy
