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
#include "devices/apart.h"
#include "devices/device.h"
#include "devices/model_state.h"

namespace rivulet::devices {

enum class Loss : std::uint8_t { cross_entropy, mse };

/// Where the channels of an image lie while a network computes: pixel by pixel, or plane by plane. The same
/// function, other bits.
enum class MemoryFormat : std::uint8_t { channels_last, contiguous };

/// [model] and [train] as plain values.
struct ModelConfig {
  std::string name;
  std::vector<std::int64_t> input;  ///< shape of one row, e.g. {1, 28, 28}
  std::int64_t outputs = 10;        ///< classes, or numbers per row for regression
  Loss loss = Loss::cross_entropy;
  Scalar scalar = Scalar::f32;
  MemoryFormat memory_format = MemoryFormat::channels_last;  ///< of images in float32
  /// Convolutions and products of the training pass in bfloat16; state, gradients, sums and evaluation stay
  /// as `scalar` says. Only with f32.
  bool autocast_bfloat16 = false;
  /// ModelLayout::optimizer_arrays of its states.
  std::vector<OptimizerArray> optimizer_arrays = {{"momentum"}};
  double average_rows = 0;  ///< ModelLayout::average_rows of its states
  int threads = 1;          ///< intra-op threads
  Settings settings = {};   ///< of the entry's keys
};

/// What one batch gave. Sums, so that reports of several devices add up.
struct StepReport {
  double loss_sum = 0;        ///< over rows, before the step (test-then-train)
  std::uint64_t correct = 0;  ///< classification only
  std::uint64_t rows = 0;
  bool finite = true;         ///< loss and gradient are finite
  double gradient_norm2 = 0;  ///< squared L2 of the mean gradient, as computed, before weights
  // Until the trainer's next call:
  /// Of each normalized column, values of the batch that were clipped as outliers; empty: none were looked
  /// for.
  std::span<const std::uint32_t> beyond = {};
  /// What the model said of each row whose gradient was computed: a class, [rows]; of numbers [rows,
  /// outputs], in the targets' unit. Empty: the trainer does not tell.
  std::span<const float> answers = {};
};

/// Computes on a ModelState; holds no trained number of its own. One trainer can serve many states.
/// Owner: one thread at a time.
class Trainer {
 public:
  virtual ~Trainer() = default;
  [[nodiscard]] virtual const ModelLayout& layout() const noexcept = 0;
  /// Parameters from the seed, what the optimizer remembers 0, buffers at their start values. Same seed, same
  /// bits.
  virtual Status initialize(ModelState& state, std::uint64_t seed) = 0;
  /// Mean gradient of the batch into out[0, P) and the buffers after this forward pass into out[P, P + B).
  /// `state` is not changed. `out` has layout().contribution() numbers. Zero rows: out = 0, report of zeros.
  /// Errors: numeric never (see StepReport::finite); unavailable (out of memory), io (library trouble).
  virtual Result<StepReport> compute_gradients(const ModelState& state, const BatchView& batch,
                                               GradientView out) = 0;
  /// Forward only, evaluation mode.
  virtual Result<StepReport> evaluate(const ModelState& state, const BatchView& batch) = 0;
  /// Raw outputs [rows, outputs] of a forward pass in evaluation mode, row-major.
  virtual Result<std::vector<float>> predict(const ModelState& state, const BatchView& batch) = 0;
};

/// How many numbers of ModelConfig::scalar a model takes, so that one that does not fit is never made.
struct ModelNeeds {
  double parameters = 0;  ///< at least
  double per_row = 0;     ///< of a batch while its gradients are computed, at most: what layers keep, their
                          ///< gradients, what the library copies; a gradient of the
                          ///< parameters besides
};

/// How a model whose code is somebody else's is tried before it is trained.
struct Trial {
  std::size_t rows_min = 1;  ///< of a batch
  std::size_t rows_max = 2;
  double memory = std::numeric_limits<double>::infinity();  ///< bytes that it may take
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
  /// What it takes, without making it; of a configuration that make() refuses, any answer does. Null: nothing
  /// worth counting besides what its layout says.
  ModelNeeds (*needs)(const ModelConfig&) = nullptr;
  /// In place of needs(), of a model whose code is not ours: runs it, where it can be ended, as training
  /// will, and measures. make() is for what passed. Errors: invalid_config (what is wrong with it, that it
  /// did not answer in time), cancelled.
  Result<ModelNeeds> (*try_out)(const ModelConfig&, const Trial&) = nullptr;
  /// Its first two tensors are a linear layer over the features as they come: weight [n, columns], bias [n].
  /// What is linear in the features can be folded into it.
  bool linear_first = false;
  /// Its last two tensors are a linear layer that gives the outputs: weight [outputs, n], bias [outputs].
  bool linear_last = false;
  std::span<const Key> keys = {};
  /// What is wrong with its keys together, where `model` is what the configuration names. Null: nothing can
  /// be.
  std::vector<KeyFault> (*check)(const Settings& settings, std::string_view model) = nullptr;
  /// What its keys make of it: states of models for which this differs mean something else. Null: nothing.
  std::vector<std::pair<std::string, std::vector<std::string>>> (*meaning)(const Settings& settings) =
      nullptr;
  /// Its name in states; null: `name`.
  std::string (*state_name)(const Settings& settings) = nullptr;
  /// The outputs are linear in the features.
  bool linear = false;
  /// How well it suits rows of this shape, for a proposal; 0, or null: not at all.
  int (*suits)(std::span<const std::int64_t> shape) = nullptr;
  /// Keys that a proposal of it sets, with their values as TOML.
  std::span<const std::pair<std::string_view, std::string_view>> proposed = {};
  /// It learns from single rows of few numbers: a proposal of it makes small steps.
  bool small_steps = false;
};
std::span<const ModelEntry* const> builtin_models() noexcept;
/// Names of the models that a build with LibTorch has, whether or not this is one.
std::span<const std::string_view> models_of_torch() noexcept;

/// Versions and settings of the numeric library, for doctor: {"LibTorch","2.15.0"}, {"BLAS",...}, {"CPU
/// capability",...},
/// {"threads",...}. In a build without LibTorch one entry with that fact.
std::vector<std::pair<std::string, std::string>> numeric_library_facts();

/// Process-wide numeric settings, once, first thing in main: malloc thresholds and intra-op threads.
void prepare_process(int threads);

}  // namespace rivulet::devices
