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

/// Arguments of one step: host-readable flat arrays of P elements and one scalar type that do not overlap.
struct OptimizerStep {
  GradientView parameters;
  std::span<const GradientView> arrays;  ///< in the order of OptimizerEntry::arrays
  GradientView gradient;
  double scale = 1.0;  ///< factor of the gradient, from clipping
  double learning_rate = 0;
  double weight_decay = 0;
  std::uint64_t step = 1;    ///< counts from 1
  const Settings& settings;  ///< of the entry's keys
};

/// An OptimizerArray of an entry.
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
  std::span<const RememberedArray> arrays;  ///< P elements each, part of the agreed state
  void (*step)(const OptimizerStep&);       ///< null for runs that only measure time: no step is computed
  /// Total change of the parameters that a gradient of 1 causes, including later steps through momentum. With
  /// it, the optimizer's state is a sum of gradients, and devices may keep parts of it. Null if the change
  /// also depends on other gradients.
  double (*delta_per_gradient)(double learning_rate, const Settings& settings) = nullptr;
};
std::span<const OptimizerEntry* const> builtin_optimizers() noexcept;

/// [train.optimizer] and [train] as plain values.
struct OptimizerConfig {
  const OptimizerEntry* entry = nullptr;
  double learning_rate = 0.05;
  double weight_decay = 0.0;
  double clip_grad_norm = 0.0;  ///< 0 = off
  Settings settings = {};       ///< of the entry's keys
  bool clip_usual = false;      ///< clips at a multiple of the state's usual norm instead of clip_grad_norm
};
/// Returns the norm to which gradients are clipped; 0: no clipping.
double longest_gradient(const OptimizerConfig& config, const Statistics& known);

/// Returns ModelLayout::optimizer_arrays for this optimizer.
std::vector<OptimizerArray> arrays_of(const OptimizerEntry& optimizer);

struct ApplyReport {
  double gradient_norm = 0;  ///< of the agreed gradient, before clipping
  double learning_rate = 0;
};

/// Applies an agreed, host-readable contribution [P + B] to a state: steps the parameters, replaces the
/// buffers, and updates the usual norm (as AutoClip: Seetharaman et al., 2020, with the mean square instead
/// of a percentile). `step` counts from 1. Cost: one pass over the gradient for its norm, one over all
/// arrays. Errors: from copies between host and device.
Result<ApplyReport> apply_gradient(const OptimizerConfig& config, ModelState& state,
                                   const GradientView& agreed, double learning_rate_factor,
                                   std::uint64_t step, Device& device);

}  // namespace rivulet::devices
