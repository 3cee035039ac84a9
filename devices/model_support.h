#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/gradient_view.h"
#include "core/result.h"
#include "core/rng.h"
#include "devices/trainer.h"

/// Shared code of all models on the host, with and without LibTorch.
namespace rivulet::devices {

/// Checks the keys that every model has. Errors: invalid_config (names the key).
Status check_model_config(const ModelConfig& config);

/// Returns the error for rows of the wrong shape: invalid_config, with model.name and the shape from decode.
Error wrong_input(const ModelConfig& config, std::string_view wanted);

/// Product of the input shape: features per row.
std::size_t columns_of(const ModelConfig& config);

/// Aborts if the batch has the wrong shape for the model: a bug in the caller.
void check_batch(const BatchView& batch, const ModelConfig& config);

/// Reads the class indices of a batch. Errors: bad_record (names the row and the value). Libraries may crash
/// on invalid indices.
Status read_classes(const BatchView& batch, std::int64_t classes, std::vector<std::int64_t>& out);

/// Fills with uniform values in [-bound, bound) from our own generator: the same bits with every library.
void fill_uniform(const GradientView& numbers, double bound, Rng& rng);
void fill_constant(const GradientView& numbers, double value);

/// Sets the array to zero.
void fill_zero(const GradientView& numbers);

}  // namespace rivulet::devices
