#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/gradient_view.h"
#include "core/result.h"
#include "core/settings.h"
#include "devices/device.h"
#include "devices/model_state.h"

namespace rivulet::devices {

/// One step over flat arrays that the host can read, all of P numbers and one scalar type. They do not
/// overlap.
struct OptimizerStep {
  GradientView parameters;
  std::span<const GradientView> arrays;  ///< as OptimizerEntry::arrays has them
  GradientView gradient;
  double scale = 1.0;  ///< of the gradient, from clipping
  double learning_rate = 0;
  double weight_decay = 0;
  std::uint64_t step = 1;    ///< counts from 1
  const Settings& settings;  ///< of the entry's keys
};

/// An array of an entry: OptimizerArray.
struct RememberedArray {
  std::string_view name;
  ArrayKind kind;
};

/// An entry of the catalog of optimizers. To add one, add a file devices/optimizer/<name>.cpp that defines
/// `const OptimizerEntry optimizer_<name>`; the build finds it, and its keys are configuration keys.
struct OptimizerEntry {
  std::string_view name;
  std::string_view help;
  std::span<const Key> keys;
  std::span<const RememberedArray> arrays;  ///< what it remembers: P numbers each, part of the agreed state
  void (*step)(const OptimizerStep&);       ///< null: nothing is computed, where only times matter
  /// How far a gradient of 1 moves the parameters, by the steps that remember it, too. So what it remembers
  /// is a sum of gradients, of which devices may keep parts. Null: it depends on the other gradients.
  double (*movement_per_gradient)(double learning_rate, const Settings& settings) = nullptr;
};
std::span<const OptimizerEntry* const> builtin_optimizers() noexcept;

/// [train.optimizer] and [train] as plain values.
struct OptimizerConfig {
  const OptimizerEntry* entry = nullptr;
  double learning_rate = 0.05;
  double weight_decay = 0.0;
  double clip_grad_norm = 0.0;  ///< 0 = off
  Settings settings = {};       ///< of the entry's keys
  bool clip_usual = false;      ///< in place of clip_grad_norm: a multiple of the state's usual norm
};
/// A gradient that is longer than this is made as long; 0: any length is right.
double longest_gradient(const OptimizerConfig& config, const Statistics& known);

/// ModelLayout::optimizer_arrays of its states.
std::vector<OptimizerArray> arrays_of(const OptimizerEntry& optimizer);

struct ApplyReport {
  double gradient_norm = 0;  ///< of the agreed gradient, before clipping
  double learning_rate = 0;
};

/// One step of a state with an agreed contribution [P + B] that the host can read: the optimizer's on the
/// parameters, buffers replaced, and the state's usual norm follows (as AutoClip: Seetharaman et al., 2020,
/// of the mean square in place of a percentile). `step` counts from 1. Cost: one pass over the gradient for
/// its norm, one over all arrays. Errors: those of a device that has to copy.
Result<ApplyReport> apply_gradient(const OptimizerConfig& config, ModelState& state,
                                   const GradientView& agreed, double learning_rate_factor,
                                   std::uint64_t step, Device& device);

}  // namespace rivulet::devices
