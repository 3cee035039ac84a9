// Fully connected layers with their own gradient, for narrow layers: LibTorch's operators and graph take 90 %
// of the time of a step of 16 rows with two layers of 64. LibTorch computes wide layers, on GPUs and in
// bfloat16.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/check.h"
#include "devices/model/row_loss.h"
#include "devices/model_support.h"
#include "devices/numbers.h"
#include "devices/products.h"
#include "devices/torch_mlp.h"
#include "devices/trainer.h"

namespace rivulet::devices {
namespace {

/// Maximum number of parameters at which these layers are faster than LibTorch's (bench/small_models).
constexpr std::size_t narrow_parameters = 65'536;

/// Rows per block of a pass: bounds the scratch for any batch.
constexpr std::size_t block_rows = 64;

constexpr std::array keys{
    Key{.name = "model.mlp.hidden",
        .type = KeyType::integers,
        .text = "[64, 64]",
        .help = "units of each hidden layer of mlp",
        .least = 1,
        .most = 1e6,
        .sample = "#[64, 64]"},
    Key{.name = "model.mlp.activation",
        .type = KeyType::text,
        .text = "\"relu\"",
        .choices = "relu | tanh",
        .sample = "#\"relu\""},
    Key{.name = "model.mlp.skip",
        .type = KeyType::boolean,
        .text = "false",
        .help = "linear skip connection from features to outputs, initially 0; learns faster from few rows",
        .sample = "#false"},
};

MlpShape shape_of(const Settings& settings) {
  return {.hidden = settings.integers(keys[0].name),
          .tanh = settings.text(keys[1].name) == "tanh",
          .skip = settings.flag(keys[2].name)};
}

/// Offsets of a linear layer in the parameters: weight [outputs, inputs], then bias [outputs] if it has one.
struct Layer {
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  std::size_t weight = 0;
  std::size_t bias = 0;
};

/// Layers in the order of the parameters: the hidden layers, `skip`, the outputs.
struct Layers {
  std::vector<Layer> chain;  ///< the hidden ones, then the outputs
  Layer skip;                ///< from features to outputs, without a bias; 0 inputs: none
  ModelLayout layout;
};

Layer append(Layers& layers, const std::string& name, std::size_t inputs, std::size_t outputs, bool biased) {
  ModelLayout& layout = layers.layout;
  const Layer layer{inputs, outputs, layout.parameters, layout.parameters + outputs * inputs};
  const auto rows = static_cast<std::int64_t>(outputs);
  layout.parameter_slots.push_back(
      {name + ".weight", {rows, static_cast<std::int64_t>(inputs)}, layer.weight, outputs * inputs});
  if (biased) layout.parameter_slots.push_back({name + ".bias", {rows}, layer.bias, outputs});
  layout.parameters += outputs * inputs + (biased ? outputs : 0);
  return layer;
}

Layers layers_of(const ModelConfig& config) {
  const MlpShape shape = shape_of(config.settings);
  Layers layers;
  layers.layout.scalar = config.scalar;
  layers.layout.optimizer_arrays = config.optimizer_arrays;
  layers.layout.average_rows = config.average_rows;
  const std::size_t columns = columns_of(config);
  const auto outputs = static_cast<std::size_t>(config.outputs);
  std::size_t width = columns;
  for (const std::int64_t next : shape.hidden) {
    const std::string name = "hidden" + std::to_string(layers.chain.size());
    layers.chain.push_back(append(layers, name, width, static_cast<std::size_t>(next), true));
    width = static_cast<std::size_t>(next);
  }
  if (shape.skip) layers.skip = append(layers, "skip", columns, outputs, false);
  layers.chain.push_back(append(layers, "output", width, outputs, true));
  return layers;
}

/// to[c, r] = from[r, c].
template <class T, class U>
void transpose(const U* from, std::size_t from_row, std::size_t rows, std::size_t columns, T* to,
               std::size_t to_row) {
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) to[c * to_row + r] = static_cast<T>(from[r * from_row + c]);
  }
}

/// T is the type of parameters, gradient and sums.
template <class T>
class MlpTrainer final : public Trainer {
 public:
  explicit MlpTrainer(const ModelConfig& config)
      : config_(config), layers_(layers_of(config)), tanh_(shape_of(config.settings).tanh), loss_(config) {
    std::size_t widest = 0;
    for (const Layer& layer : layers_.chain) {
      across_.emplace_back(layer.inputs * block_rows);
      along_.emplace_back(block_rows * padded(layer.inputs));
      widest = std::max(widest, layer.outputs);
    }
    outputs_.resize(widest * block_rows);
    deltas_.resize(widest * block_rows);
    row_outputs_.resize(static_cast<std::size_t>(config.outputs));
  }

  [[nodiscard]] const ModelLayout& layout() const noexcept override { return layers_.layout; }

  Status initialize(ModelState& state, std::uint64_t seed) override {
    Rng rng = Rng::derive(seed, "model");
    fill_zero(state.parameters());
    for (const Layer& layer : layers_.chain) {
      const std::size_t numbers = layer.outputs * (layer.inputs + 1);
      fill_uniform(state.parameters().slice(layer.weight, numbers),
                   1.0 / std::sqrt(static_cast<double>(layer.inputs)), rng);
    }
    state.zero_optimizer();
    return ok();
  }

  Result<StepReport> compute_gradients(const ModelState& state, const BatchView& batch,
                                       GradientView out) override {
    RIVULET_CHECK(out.count == layout().contribution() && out.scalar == layout().scalar,
                  "the contribution belongs to a different model");
    if (Status good = begin(batch); !good) return good.error();
    fill_zero(out);
    StepReport report;
    forward_in_blocks(state, batch, [&](const T* parameters, std::size_t first, std::size_t rows) {
      judge(batch, first, rows, report);
      lay_along(batch, first, rows);
      backward(parameters, rows, out.as<T>().data());
    });
    report.answers = loss_.answers();
    report.gradient_norm2 = norm2(out);
    report.finite = std::isfinite(report.loss_sum) && std::isfinite(report.gradient_norm2);
    return report;
  }

  Result<StepReport> evaluate(const ModelState& state, const BatchView& batch) override {
    if (Status good = begin(batch); !good) return good.error();
    StepReport report;
    forward_in_blocks(state, batch, [&](const T*, std::size_t first, std::size_t rows) {
      judge(batch, first, rows, report);
    });
    report.finite = std::isfinite(report.loss_sum);
    return report;
  }

  Result<std::vector<float>> predict(const ModelState& state, const BatchView& batch) override {
    check_batch(batch, config_);
    const std::size_t width = row_outputs_.size();
    std::vector<float> all(batch.rows * width);
    forward_in_blocks(state, batch, [&](const T*, std::size_t first, std::size_t rows) {
      transpose(outputs_.data(), block_rows, width, rows, all.data() + first * width, width);
    });
    return all;
  }

 private:
  Status begin(const BatchView& batch) {
    check_batch(batch, config_);
    return loss_.begin(batch);
  }

  /// Calls use(parameters, first row, rows) after the forward pass of each block.
  template <class Use>
  void forward_in_blocks(const ModelState& state, const BatchView& batch, const Use& use) {
    const T* parameters = state.parameters().template as<T>().data();
    for (std::size_t first = 0; first < batch.rows; first += block_rows) {
      const std::size_t rows = std::min(block_rows, batch.rows - first);
      forward(parameters, batch, first, rows);
      use(parameters, first, rows);
    }
  }

  /// Leaves the outputs [outputs, block_rows] in outputs_ and the inputs of each layer in across_.
  void forward(const T* parameters, const BatchView& batch, std::size_t first, std::size_t rows) {
    const std::size_t columns = layers_.chain.front().inputs;
    transpose(batch.features.data() + first * columns, columns, rows, columns, across_.front().data(),
              block_rows);
    for (std::size_t l = 0; l < layers_.chain.size(); ++l) {
      const Layer& layer = layers_.chain[l];
      const bool last = l + 1 == layers_.chain.size();
      T* out = last ? outputs_.data() : across_[l + 1].data();
      for (std::size_t o = 0; o < layer.outputs; ++o)
        std::fill_n(out + o * block_rows, rows, parameters[layer.bias + o]);
      add_products(parameters, layer, across_[l].data(), rows, out);
      if (last && layers_.skip.inputs > 0)
        add_products(parameters, layers_.skip, across_.front().data(), rows, out);
      if (!last) activate(out, layer.outputs, rows);
    }
  }

  static void add_products(const T* parameters, const Layer& layer, const T* in, std::size_t rows, T* out) {
    multiply(Product<T>{.rows = layer.outputs,
                        .columns = rows,
                        .depth = layer.inputs,
                        .left = parameters + layer.weight,
                        .left_row = layer.inputs,
                        .left_depth = 1,
                        .right = in,
                        .right_row = block_rows,
                        .out = out,
                        .out_row = block_rows,
                        .adds = true});
  }

  /// Preserves NaN.
  void activate(T* numbers, std::size_t width, std::size_t rows) const {
    for (std::size_t o = 0; o < width; ++o, numbers += block_rows) {
      for (std::size_t r = 0; r < rows; ++r) {
        const T x = numbers[r];
        numbers[r] = tanh_ ? std::tanh(x) : (x < 0 ? T{0} : x);
      }
    }
  }

  /// Replaces outputs_ by d (mean loss) / d output.
  void judge(const BatchView& batch, std::size_t first, std::size_t rows, StepReport& report) {
    const std::size_t width = row_outputs_.size();
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t o = 0; o < width; ++o) row_outputs_[o] = outputs_[o * block_rows + row];
      loss_.judge(batch, first + row, row_outputs_, report);
      for (std::size_t o = 0; o < width; ++o) outputs_[o * block_rows + row] = row_outputs_[o];
    }
  }

  /// Stores the inputs of each layer row by row, as the right factor of its gradient.
  void lay_along(const BatchView& batch, std::size_t first, std::size_t rows) {
    const std::size_t columns = layers_.chain.front().inputs;
    const float* features = batch.features.data() + first * columns;
    for (std::size_t r = 0; r < rows; ++r, features += columns)
      std::copy_n(features, columns, along_.front().data() + r * padded(columns));
    for (std::size_t l = 1; l < layers_.chain.size(); ++l) {
      const std::size_t inputs = layers_.chain[l].inputs;
      transpose(across_[l].data(), block_rows, inputs, rows, along_[l].data(), padded(inputs));
    }
  }

  /// Adds the block's gradient, from d loss / d output in outputs_, which it overwrites.
  void backward(const T* parameters, std::size_t rows, T* gradient) {
    if (layers_.skip.inputs > 0) add_gradient(layers_.skip, along_.front().data(), rows, gradient);
    for (std::size_t l = layers_.chain.size(); l-- > 0;) {
      const Layer& layer = layers_.chain[l];
      add_gradient(layer, along_[l].data(), rows, gradient);
      for (std::size_t o = 0; o < layer.outputs; ++o) {
        T sum = 0;
        for (std::size_t r = 0; r < rows; ++r) sum += outputs_[o * block_rows + r];
        gradient[layer.bias + o] += sum;
      }
      if (l > 0) pass_down(parameters, layer, across_[l].data(), rows);
    }
  }

  void add_gradient(const Layer& layer, const T* along, std::size_t rows, T* gradient) const {
    multiply(Product<T>{.rows = layer.outputs,
                        .columns = layer.inputs,
                        .depth = rows,
                        .left = outputs_.data(),
                        .left_row = block_rows,
                        .left_depth = 1,
                        .right = along,
                        .right_row = padded(layer.inputs),
                        .out = gradient + layer.weight,
                        .out_row = layer.inputs,
                        .adds = true});
  }

  /// Replaces d loss / d output of the layer, in outputs_, by d loss / d input of the activation before it.
  void pass_down(const T* parameters, const Layer& layer, const T* activated, std::size_t rows) {
    multiply(Product<T>{.rows = layer.inputs,
                        .columns = rows,
                        .depth = layer.outputs,
                        .left = parameters + layer.weight,
                        .left_row = 1,
                        .left_depth = layer.inputs,
                        .right = outputs_.data(),
                        .right_row = block_rows,
                        .out = deltas_.data(),
                        .out_row = block_rows});
    for (std::size_t i = 0; i < layer.inputs; ++i) {
      T* delta = deltas_.data() + i * block_rows;
      const T* y = activated + i * block_rows;
      for (std::size_t r = 0; r < rows; ++r)
        delta[r] = tanh_ ? delta[r] * (1 - y[r] * y[r]) : (y[r] <= 0 ? T{0} : delta[r]);
    }
    std::swap(outputs_, deltas_);
  }

  // constant
  ModelConfig config_;
  Layers layers_;
  bool tanh_;
  // scratch for block_rows rows, feature by feature unless noted
  std::vector<std::vector<T>> across_;  ///< inputs of each layer [inputs, block_rows]
  std::vector<std::vector<T>> along_;   ///< the same row by row [block_rows, padded(inputs)]
  std::vector<T> outputs_;              ///< of the last layer; then the gradient passed down
  std::vector<T> deltas_;
  std::vector<T> row_outputs_;
  RowLoss<T> loss_;
};

std::string fault_of(const std::string& activation, const MlpShape& shape) {
  if (activation != "relu" && activation != "tanh")
    return "model.mlp.activation is \"" + activation + "\"; it must be relu or tanh";
  for (const std::int64_t width : shape.hidden)
    if (width < 1)
      return "model.mlp.hidden contains " + std::to_string(width) + "; every layer needs at least 1 unit";
  return shape.skip && shape.hidden.empty() ? "model.mlp.skip needs a hidden layer to bypass" : "";
}

/// Memory per row: the outputs of each layer before and after its activation, and a gradient of each.
ModelNeeds needs(const ModelConfig& config) {
  const MlpShape shape = shape_of(config.settings);
  auto width = static_cast<double>(columns_of(config));
  ModelNeeds all{0, width};
  std::vector<std::int64_t> widths = shape.hidden;
  widths.push_back(config.outputs);
  for (const std::int64_t layer : widths) {
    const auto next = static_cast<double>(layer);
    all.parameters += (width + 1) * next;
    all.per_row += 5 * next;
    width = next;
  }
  if (shape.skip) {
    const auto outputs = static_cast<double>(config.outputs);
    all.parameters += static_cast<double>(columns_of(config)) * outputs;
    all.per_row += 3 * outputs;
  }
  return all;
}

Result<std::unique_ptr<Trainer>> make(const ModelConfig& config, Device& device) {
  const std::string fault = fault_of(config.settings.text(keys[1].name), shape_of(config.settings));
  if (!fault.empty()) return Error{ErrorCode::invalid_config, fault};
  if (Status good = check_model_config(config); !good) return good.error();
  const ComputePlace place = device.computes_on();
  const bool narrow = needs(config).parameters <= narrow_parameters;
  if (make_torch_mlp != nullptr && (place.copies_arrays || config.autocast_bfloat16 || !narrow))
    return make_torch_mlp(config, shape_of(config.settings), place);
  if (config.autocast_bfloat16)
    return Error{ErrorCode::invalid_config, "model.autocast: this build lacks LibTorch, needed for bfloat16"};
  if (config.scalar == Scalar::f64)
    return std::unique_ptr<Trainer>(std::make_unique<MlpTrainer<double>>(config));
  return std::unique_ptr<Trainer>(std::make_unique<MlpTrainer<float>>(config));
}

std::vector<KeyFault> check(const Settings& settings, std::string_view model) {
  const MlpShape shape = shape_of(settings);
  if (model != "mlp") return {};
  if (shape.hidden.size() > 64) return {{{"model.mlp.hidden"}, "'model.mlp.hidden' has more than 64 layers"}};
  if (!shape.skip || !shape.hidden.empty()) return {};
  return {{{"model.mlp.skip", "model.mlp.hidden"},
           "'model.mlp.skip' needs a hidden layer to bypass, and 'model.mlp.hidden' is []"}};
}

std::vector<std::pair<std::string, std::vector<std::string>>> meaning(const Settings& settings) {
  std::vector<std::string> widths;
  for (const std::int64_t width : shape_of(settings).hidden) widths.push_back(std::to_string(width));
  const std::string& activation = settings.text(keys[1].name);
  if (!shape_of(settings).skip) return {{"hidden layers", widths}, {"activation", {activation}}};
  return {{"hidden layers", widths}, {"activation", {activation}}, {"skip", {"true"}}};
}

/// With few features, a skip layer learns linear relations within a few steps (bench/streams).
constexpr std::array<std::pair<std::string_view, std::string_view>, 1> proposed{{{keys[2].name, "true"}}};

}  // namespace

extern const ModelEntry model_mlp;
const ModelEntry model_mlp{
    .name = "mlp",
    .help = "multilayer perceptron for rows of any shape: model.mlp = { hidden, activation, skip }",
    .make = make,
    .needs = needs,
    .linear_first = true,
    .linear_last = true,
    .keys = keys,
    .check = check,
    .meaning = meaning,
    .suits = [](std::span<const std::int64_t>) { return 2; },
    .proposed = proposed,
    .small_steps = true};

}  // namespace rivulet::devices
