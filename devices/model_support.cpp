#include "devices/model_support.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/check.h"

namespace rivulet::devices {
namespace {

Error invalid(std::string message) {
  return {ErrorCode::invalid_config, std::move(message)};
}

template <class T>
void fill(std::span<T> numbers, double bound, Rng& rng) {
  for (T& x : numbers) x = static_cast<T>((2.0 * rng.uniform() - 1.0) * bound);
}

}  // namespace

Status check_model_config(const ModelConfig& config) {
  if (config.input.empty() || std::ranges::any_of(config.input, [](std::int64_t d) { return d < 1; })) {
    return invalid(fmt::format("decode: the shape of a row is [{}]; every dimension must be at least 1",
                               fmt::join(config.input, ", ")));
  }
  if (config.loss == Loss::cross_entropy && config.outputs < 2) {
    return invalid(fmt::format("model.classes is {}; cross_entropy needs at least 2", config.outputs));
  }
  if (config.outputs < 1)
    return invalid(fmt::format("model.outputs is {}; it must be at least 1", config.outputs));
  if (config.autocast_bfloat16 && config.scalar != Scalar::f32)
    return invalid("model.autocast = \"bfloat16\" needs model.dtype = \"float32\"");
  if (config.threads < 1)
    return invalid(fmt::format("device.threads is {}; it must be at least 1", config.threads));
  return ok();
}

Error wrong_input(const ModelConfig& config, std::string_view wanted) {
  return invalid(fmt::format("model.name = \"{}\" needs rows of shape {}, but decode produces [{}]",
                             config.name, wanted, fmt::join(config.input, ", ")));
}

std::size_t columns_of(const ModelConfig& config) {
  return RowShape{config.input, 1}.columns();
}

void check_batch(const BatchView& batch, const ModelConfig& config) {
  const std::size_t targets =
      config.loss == Loss::cross_entropy ? 1 : static_cast<std::size_t>(config.outputs);
  RIVULET_CHECK(batch.features.size() == batch.rows * columns_of(config), "features have the wrong shape");
  RIVULET_CHECK(batch.targets.size() == batch.rows * targets, "targets have the wrong shape");
}

Status read_classes(const BatchView& batch, std::int64_t classes, std::vector<std::int64_t>& out) {
  out.resize(batch.rows);
  for (std::size_t row = 0; row < batch.rows; ++row) {
    const float target = batch.targets[row];
    // Written so that NaN also fails.
    if (!(target >= 0.0F && target < static_cast<float>(classes) && target == std::floor(target))) {
      return Error{ErrorCode::bad_record, fmt::format("row {} of the batch has label {}; classes are 0 to {}",
                                                      row, target, classes - 1)};
    }
    out[row] = static_cast<std::int64_t>(target);
  }
  return ok();
}

void fill_uniform(const GradientView& numbers, double bound, Rng& rng) {
  if (numbers.scalar == Scalar::f32) return fill(numbers.as<float>(), bound, rng);
  fill(numbers.as<double>(), bound, rng);
}

void fill_constant(const GradientView& numbers, double value) {
  if (numbers.scalar == Scalar::f32) {
    std::ranges::fill(numbers.as<float>(), static_cast<float>(value));
  } else {
    std::ranges::fill(numbers.as<double>(), value);
  }
}

void fill_zero(const GradientView& numbers) {
  const auto bytes = numbers.host_bytes();
  if (!bytes.empty()) std::memset(bytes.data(), 0, bytes.size());
}

}  // namespace rivulet::devices
