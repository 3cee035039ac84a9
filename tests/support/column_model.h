#pragma once
#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <vector>

#include "core/rng.h"
#include "devices/columns.h"
#include "devices/host_memory.h"
#include "devices/normalizer.h"
#include "tests/support/model_fixture.h"

/// A model whose columns are tracked, in double precision, so that only the rewriting can make a difference.
namespace rivulet::testing {

/// Streams with three features: one around `level`, one around 0, and a constant 5. A target is the first
/// feature, plus one for each further output, times `target_scale`. For classes only target_scale 0 is valid.
struct ColumnModel {
  static constexpr std::size_t features = 3;

  /// `config` must have three features and float64.
  explicit ColumnModel(const devices::ModelConfig& config)
      : targets_each(config.loss == devices::Loss::mse ? static_cast<std::size_t>(config.outputs) : 1) {
    const auto& entry = model_entry(config.name);
    trainer = devices::make_normalizing(make_trainer(config, *device), *device,
                                        {.features = features,
                                         .targets = config.loss == devices::Loss::mse ? targets_each : 0,
                                         .window = 500,
                                         .linear_first = entry.linear_first,
                                         .linear_last = entry.linear_last});
    state.emplace(make_state(*trainer, *device, 3));
    memory = make_contribution(trainer->layout(), *device);
    out = view_of(*memory, trainer->layout());
  }
  /// Computes a batch without changing parameters.
  void measure(const std::vector<float>& x, const std::vector<float>& y) {
    const std::size_t rows = x.size() / features;
    REQUIRE(trainer->compute_gradients(*state, {x, y, rows, {}}, out));
    devices::copy_host_numbers(out.slice(out.count - state->layout().buffers, state->layout().buffers),
                               state->buffers());
    REQUIRE(devices::follow_columns(*state, static_cast<double>(rows), *device));
  }
  void stream(int batches) {
    for (int i = 0; i < batches; ++i) {
      const auto x = rows(20);
      measure(x, targets(x));
    }
  }
  std::vector<float> rows(std::size_t n) {
    std::vector<float> all;
    for (std::size_t i = 0; i < n; ++i)
      all.insert(all.end(),
                 {static_cast<float>(level + spread * rng.normal()), static_cast<float>(rng.normal()), 5.0F});
    return all;
  }
  [[nodiscard]] std::vector<float> targets(const std::vector<float>& x) const {
    std::vector<float> all;
    for (std::size_t i = 0; i < x.size(); i += features)
      for (std::size_t o = 0; o < targets_each; ++o)
        all.push_back(target_scale * (x[i] + static_cast<float>(o)));
    return all;
  }
  std::vector<float> predict(const std::vector<float>& x) {
    const std::size_t n = x.size() / features;
    const std::vector<float> none(n * targets_each);
    return trainer->predict(*state, {x, none, n, {}}).value();
  }

  const std::size_t targets_each;  ///< target values per row
  std::unique_ptr<devices::Device> device = devices::make_host_device();
  std::unique_ptr<devices::Trainer> trainer;
  std::optional<devices::ModelState> state;
  std::unique_ptr<devices::Memory> memory;
  GradientView out;
  Rng rng{5};
  double level = 100;
  double spread = 10;
  float target_scale = 1;
};

inline void check_equal(const std::vector<float>& a, const std::vector<float>& b, double close = 1e-5) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO(i);
    CHECK(a[i] == doctest::Approx(b[i]).epsilon(close));
  }
}

}  // namespace rivulet::testing
