#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/digest.h"
#include "core/row.h"
#include "devices/torch_mlp.h"
#include "devices/trainer.h"

/// Shared by tests of devices and models.
namespace rivulet::testing {

/// Returns an entry of the catalog; aborts if missing.
const devices::ModelEntry& model_entry(std::string_view name);

/// The smallest configuration that works with every model.
devices::ModelConfig config_of(std::string_view model, Scalar scalar = Scalar::f32);

// Sets the keys of an "mlp".
void set_hidden(devices::ModelConfig& config, Settings::Integers widths);
void set_activation(devices::ModelConfig& config, const std::string& name);
void set_skip(devices::ModelConfig& config, bool skip);
/// The same, as read by the model.
devices::MlpShape mlp_shape(const devices::ModelConfig& config);

/// Sets file and sha256 of a "torchscript".
void pin_script(devices::ModelConfig& config, const std::string& file);

std::unique_ptr<devices::Trainer> make_trainer(const devices::ModelConfig& config, devices::Device& device);
devices::ModelState make_state(devices::Trainer& trainer, devices::Device& device, std::uint64_t seed);
std::unique_ptr<devices::Memory> make_contribution(const devices::ModelLayout& layout,
                                                   devices::Device& device);
inline GradientView view_of(const devices::Memory& memory, const devices::ModelLayout& layout) {
  return memory.view(layout.scalar, layout.contribution());
}

/// Rows for one configuration in device memory: normal features, and targets that fit the loss.
class Rows {
 public:
  Rows(const devices::ModelConfig& config, std::size_t rows, std::uint64_t seed);
  [[nodiscard]] BatchView view(std::size_t first, std::size_t rows) const;
  [[nodiscard]] BatchView all() const { return view(0, rows_); }
  [[nodiscard]] std::span<float> features() const;
  [[nodiscard]] std::span<float> targets() const;

 private:
  std::size_t rows_;
  std::size_t columns_;
  std::size_t targets_per_row_;
  std::unique_ptr<devices::Memory> feature_memory_;
  std::unique_ptr<devices::Memory> target_memory_;
};

/// The values of a host view in double.
std::vector<double> numbers_of(const GradientView& view);
/// |a - b| / |b| in L2.
double relative_l2(const std::vector<double>& a, const std::vector<double>& b);
/// Distance between the gradient of a float64 model over N rows and finite differences of its loss, as
/// relative_l2().
double gap_to_slope(const devices::ModelConfig& config, std::size_t rows);
Digest digest_of_state(const devices::ModelState& state, devices::Device& device);
Digest digest_of_numbers(const GradientView& view);

}  // namespace rivulet::testing
