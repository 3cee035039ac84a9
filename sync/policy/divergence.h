#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/stamp.h"
#include "sync/message/plan.h"

/// What a group does about a model that has diverged: whose loss no rows bring down again. Pure.
namespace rivulet::sync::policy {

/// Devices say with their facts what their own rows say of the model (flag_diverged, flag_sound, flag_good).
/// When most of those that have rows, or had them, say that it has diverged, all go back to the newest good
/// checkpoint, and go on from there at a quarter of the learning rate; two times in vain, and the group ends.
/// The rate doubles again whenever the group has trained many rows in good health. A checkpoint is good when
/// most devices have found it so by a thousand rows that came behind it: those before know nothing of its
/// last step. ADR 51.
class Divergence {
 public:
  static constexpr std::string_view name = "divergence";  ///< of its memory, among the controllers'
  static constexpr std::size_t numbers = 8;
  static constexpr double tries_most = 2;

  /// `memory`: [numbers] that fit, 0 at first; or empty: nobody ever goes back.
  explicit Divergence(std::span<double> memory) : memory_(memory) {}

  /// Anybody may have written what came with a state: these are whole numbers that counting leads to.
  static bool fits(std::span<const double> memory);

  /// Of what controllers decide.
  [[nodiscard]] double learning_rate_factor() const { return factor_of(memory_); }
  /// After everything else has been decided: may call the round off.
  void decide(const FactsTable& table, std::uint64_t view, RoundPlan& plan);

  /// The checkpoint that the group would go back to, as `agreed` remembers it: {lineage, step}; step 0: none.
  static Stamp good(std::span<const ControllerMemory> agreed);
  /// The one that is on trial: devices look at the rows behind it; step 0: none.
  static Stamp on_trial(std::span<const ControllerMemory> agreed);
  /// Of the steps that follow.
  static double learning_rate_factor(std::span<const ControllerMemory> agreed);
  /// So often it has gone back in a row, with no good checkpoint since.
  static std::uint32_t tries(std::span<const ControllerMemory> agreed);

 private:
  static double factor_of(std::span<const double> memory);
  void go_back(RoundPlan& plan);
  void recover(const FactsTable& table);
  void promote();

  std::span<double> memory_;
};

}  // namespace rivulet::sync::policy
