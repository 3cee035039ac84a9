#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/gradient_view.h"
#include "core/result.h"
#include "core/row.h"
#include "core/settings.h"
#include "devices/device.h"
#include "devices/model_state.h"
#include "devices/subprocess.h"

namespace rivulet::devices {

enum class Loss : std::uint8_t { cross_entropy, mse };

/// Memory layout of an image's channels during a pass: pixel by pixel, or plane by plane. Results differ only
/// by rounding.
enum class MemoryFormat : std::uint8_t { channels_last, contiguous };

/// [model] and [train] as plain values.
struct ModelConfig {
  std::string name;
  std::vector<std::int64_t> input;  ///< shape of one row, e.g. {1, 28, 28}
  std::int64_t outputs = 10;        ///< classes, or values per row for regression
  Loss loss = Loss::cross_entropy;
  Scalar scalar = Scalar::f32;
  MemoryFormat memory_format = MemoryFormat::channels_last;  ///< layout of images in float32
  /// Runs convolutions and products of the training pass in bfloat16. State, gradients, sums and evaluation
  /// keep type `scalar`. Only with f32.
  bool autocast_bfloat16 = false;
  /// ModelLayout::optimizer_arrays of its states.
  std::vector<OptimizerArray> optimizer_arrays = {{"momentum"}};
  double average_rows = 0;  ///< ModelLayout::average_rows of its states
  int threads = 1;          ///< intra-op threads
  Settings settings = {};   ///< of the entry's keys
};

/// Results of one batch, as sums, so that reports of several devices add up.
struct StepReport {
  double loss_sum = 0;        ///< over rows, before the step (test-then-train)
  std::uint64_t correct = 0;  ///< correctly classified rows; classification only
  std::uint64_t rows = 0;
  bool finite = true;         ///< loss and gradient are finite
  double gradient_norm2 = 0;  ///< squared L2 of the mean gradient, as computed, before weights
  // Clipped outliers of the batch per normalized column, valid until the next call of the trainer; empty if
  // not checked.
  std::span<const std::uint32_t> beyond = {};
  /// Predictions for the rows of a gradient: classes [rows], or values [rows, outputs] in the targets' unit.
  /// Empty if not reported.
  std::span<const float> answers = {};
};

/// Computes on a ModelState; holds no trained values. One trainer can serve many states.
/// Owner: one thread at a time.
class Trainer {
 public:
  virtual ~Trainer() = default;
  [[nodiscard]] virtual const ModelLayout& layout() const noexcept = 0;
  /// Sets parameters from the seed, optimizer arrays to 0, buffers to their start values. Same seed, same
  /// bits.
  virtual Status initialize(ModelState& state, std::uint64_t seed) = 0;
  /// Writes the mean gradient of the batch to out[0, P) and the buffers after this forward pass to out[P, P +
  /// B). Does not change `state`. `out` has layout().contribution() elements. For zero rows, writes a
  /// gradient of 0 and the state's buffers, and reports zeros. Errors: never numeric (see
  /// StepReport::finite); unavailable (out of memory), io (library error).
  virtual Result<StepReport> compute_gradients(const ModelState& state, const BatchView& batch,
                                               GradientView out) = 0;
  /// Scores the batch with a forward pass in evaluation mode.
  virtual Result<StepReport> evaluate(const ModelState& state, const BatchView& batch) = 0;
  /// Returns raw outputs [rows, outputs] of a forward pass in evaluation mode, row-major.
  virtual Result<std::vector<float>> predict(const ModelState& state, const BatchView& batch) = 0;
};

/// Memory of a model in elements of ModelConfig::scalar, to reject a model that does not fit before it is
/// made.
struct ModelNeeds {
  double parameters = 0;  ///< minimum
  double per_row = 0;  ///< maximum per row of a batch during a gradient: activations, their gradients, copies
                       ///< by the library; excludes the gradient of the parameters
};

/// Limits of the trial of a user's model before training.
struct Trial {
  std::size_t rows_min = 1;  ///< rows of the smallest batch
  std::size_t rows_max = 2;
  double memory = std::numeric_limits<double>::infinity();  ///< maximum bytes
  Patience patience;
};

/// One entry of the catalog of models. To add a model, add a file devices/model/<name>.cpp (torch-free) or
/// devices/model/torch/<name>.cpp that defines `const ModelEntry model_<name>`; the build finds it, and its
/// keys are configuration keys.
struct ModelEntry {
  std::string_view name;
  std::string_view help;
  /// Errors: invalid_config (names the key), unavailable (built without LibTorch).
  Result<std::unique_ptr<Trainer>> (*make)(const ModelConfig&, Device&);
  /// Returns the model's memory needs without making it; arbitrary if make() rejects the configuration. If
  /// null, the needs beyond its layout are negligible.
  ModelNeeds (*needs)(const ModelConfig&) = nullptr;
  /// Replaces needs() for a model with a user's code. Runs the code in a subprocess as in training, and
  /// measures it. make() is called only after the model passed. Errors: invalid_config (with the fault, or a
  /// timeout), cancelled.
  Result<ModelNeeds> (*try_out)(const ModelConfig&, const Trial&) = nullptr;
  /// The model's first two tensors are a linear layer over the raw features: weight [n, columns], bias [n].
  /// Linear transformations of the features can be folded into it.
  bool linear_first = false;
  /// Its last two tensors are a linear output layer: weight [outputs, n], bias [outputs].
  bool linear_last = false;
  std::span<const Key> keys = {};
  /// Returns faults in the combination of its keys; `model` is the configured model. If null, no faults are
  /// possible.
  std::vector<KeyFault> (*check)(const Settings& settings, std::string_view model) = nullptr;
  /// Returns the properties set by its keys that define the meaning of a state. Null if there are none.
  std::vector<std::pair<std::string, std::vector<std::string>>> (*meaning)(const Settings& settings) =
      nullptr;
  /// Returns its name in states. If null, `name` is used.
  std::string (*state_name)(const Settings& settings) = nullptr;
  /// The outputs are linear in the features.
  bool linear = false;
  /// Returns how well it suits rows of this shape, for a proposal. Unsuitable if 0, or if this is null.
  int (*suits)(std::span<const std::int64_t> shape) = nullptr;
  /// Keys that a proposal of it sets, with values in TOML.
  std::span<const std::pair<std::string_view, std::string_view>> proposed = {};
  /// The model learns from single rows of few features, so a proposal of it uses small steps.
  bool small_steps = false;
};
std::span<const ModelEntry* const> builtin_models() noexcept;
/// Names of the models in a build with LibTorch, even if this build lacks it.
std::span<const std::string_view> models_of_torch() noexcept;

/// Versions and settings of the numeric library, for doctor: {"LibTorch","2.15.0"}, {"BLAS",...}, {"CPU
/// capability",...}, {"threads",...}. A build without LibTorch returns one entry that reports its absence.
std::vector<std::pair<std::string, std::string>> numeric_library_facts();

/// Sets process-wide numeric settings: malloc thresholds and intra-op threads. Call once, at the start of
/// main.
void prepare_process(int threads);

}  // namespace rivulet::devices
