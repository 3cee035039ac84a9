#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/gradient_view.h"
#include "core/result.h"
#include "core/rng.h"
#include "devices/trainer.h"

/// What all models on the host share, LibTorch or not.
namespace rivulet::devices {

/// Everything that is wrong with the keys every model has. Errors: invalid_config (names the key).
Status check_model_config(const ModelConfig& config);

/// The refusal of a model whose rows have another shape: invalid_config that names model.name and decode's
/// shape.
Error wrong_input(const ModelConfig& config, std::string_view wanted);

/// Product of the input shape: numbers per row.
std::size_t columns_of(const ModelConfig& config);

/// Aborts when the batch cannot be of this model: a bug of the caller.
void check_batch(const BatchView& batch, const ModelConfig& config);

/// Class indices of a batch. Errors: bad_record (names the row and the value), so that no library sees one
/// that it would fall over.
Status read_classes(const BatchView& batch, std::int64_t classes, std::vector<std::int64_t>& out);

/// Uniform in [-bound, bound), with our own generator: the same bits whatever library computes on them.
void fill_uniform(const GradientView& numbers, double bound, Rng& rng);
void fill_constant(const GradientView& numbers, double value);

/// Sets the array to zero.
void fill_zero(const GradientView& numbers);

}  // namespace rivulet::devices
