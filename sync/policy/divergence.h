#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/stamp.h"
#include "sync/message/plan.h"

/// Response of a group to a diverged model, whose loss further training does not reduce. Pure.
namespace rivulet::sync::policy {

/// Devices report with their facts what their rows indicate about the model (flag_diverged, flag_sound,
/// flag_good). If most devices with rows report divergence, all roll back to the newest good checkpoint and
/// resume at a quarter of the learning rate. After two failed attempts the group stops. The rate doubles
/// again after many rows on which the model is good. A checkpoint is good if most devices confirm it with a
/// thousand later rows, since earlier rows do not show the effect of its last step. ADR 51.
class Divergence {
 public:
  static constexpr std::string_view name = "divergence";  ///< name of its memory among the controllers'
  static constexpr std::size_t numbers = 8;
  static constexpr double tries_most = 2;

  /// `memory`: [numbers], 0 at first. If empty, the group never rolls back.
  explicit Divergence(std::span<double> memory) : memory_(memory) {}

  /// Validates the memory in a received state: whole numbers that its counters can reach.
  static bool fits(std::span<const double> memory);

  /// Factor by which to multiply the learning-rate factor that controllers decide.
  [[nodiscard]] double learning_rate_factor() const { return factor_of(memory_); }
  /// Call after all other decisions. May cancel the round.
  void decide(const FactsTable& table, std::uint64_t view, RoundPlan& plan);

  /// The checkpoint to roll back to, from the agreed memory: {lineage, step}; step 0: none.
  static Stamp good(std::span<const ControllerMemory> agreed);
  /// The checkpoint on trial: devices report on the rows after it; step 0: none.
  static Stamp on_trial(std::span<const ControllerMemory> agreed);
  /// Learning-rate factor of the following steps.
  static double learning_rate_factor(std::span<const ControllerMemory> agreed);
  /// Number of consecutive rollbacks since the last good checkpoint.
  static std::uint32_t tries(std::span<const ControllerMemory> agreed);

 private:
  static double factor_of(std::span<const double> memory);
  void roll_back(RoundPlan& plan);
  void recover(const FactsTable& table);
  void promote();

  std::span<double> memory_;
};

}  // namespace rivulet::sync::policy
