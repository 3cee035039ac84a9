#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sync/policy/controller.h"

/// Slow loops (SlowLoop) take turns, because each measures what the others change. Pure.
namespace rivulet::sync::policy {

/// Kinds of changes, in ascending order. During a window, higher kinds may change, and lower ones wait.
enum class Precedence : std::uint8_t {
  none,
  exchange,       ///< when, transfer, compression, collective
  batch,          ///< rows of steps
  membership,     ///< a view of other members, including the capacity of its devices
  learning_rate,  ///< the schedule has fallen: gradients jump, and all wait
};
Precedence precedence_of(Role role) noexcept;

/// Each change opens a window of twice the longest half-life among the job's slow loops, counted in rounds
/// with rows. In the window, the loop that changed and those of higher precedence may change again, and the
/// others wait. After four windows without a break, each waiting loop in turn gets a window in which all
/// others wait.
class Settling {
 public:
  /// Name of its memory among the controllers'. Its ControllerMemory::devices are the members of the last
  /// view.
  static constexpr std::string_view name = "settling";
  static constexpr std::size_t numbers = 5;

  /// Whether the group has slow loops, so that this memory is needed.
  static bool is_needed(const Controllers& controllers, const PolicyConfig& config);

  /// `memory`: [numbers], 0 at first. Empty: no loop ever waits.
  Settling(const Controllers& controllers, const PolicyConfig& config, std::span<double> memory);

  /// Call when a view begins whose members are not those of the last one. It counts as a change if rounds
  /// were counted before.
  void members_changed();
  [[nodiscard]] bool waits(const ControllerEntry& controller) const;
  void has_changed(const ControllerEntry& controller);
  /// Call after the controllers. `counts`: whether the round had rows.
  void end_round(bool counts);
  /// Changes in this round, for the user. Empty if there is nothing to wait for.
  [[nodiscard]] const std::string& changes() const { return changes_; }
  /// Length of a window in rounds; 0 without slow loops.
  [[nodiscard]] double window() const { return window_; }

 private:
  void open(Precedence by, double who, std::string what);
  [[nodiscard]] const ControllerEntry* whose_turn() const;

  const Controllers& controllers_;
  std::span<double> memory_;
  Controllers loops_;  ///< the slow loops
  double window_ = 0;
  std::string changes_;
};

}  // namespace rivulet::sync::policy
