// Features of any size reach the model with mean 0 and deviation 1, and what that takes is part of the state.
#include "devices/normalizer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "core/rng.h"
#include "devices/host_memory.h"

using namespace rivulet;
using namespace rivulet::devices;

namespace {

constexpr std::size_t columns = 4;

/// A model that keeps what it is shown; its one buffer counts batches.
class Showing final : public Trainer {
 public:
  explicit Showing(std::vector<float>& shown) : shown_(shown) {
    layout_.parameters = 3;
    layout_.parameter_slots = {{"w", {3}, 0, 3}};
    layout_.buffers = 1;
    layout_.buffer_slots = {{"batches", {1}, 0, 1}};
  }
  [[nodiscard]] const ModelLayout& layout() const noexcept override { return layout_; }
  Status initialize(ModelState& state, std::uint64_t) override {
    CHECK(state.layout().buffers == 1);
    return ok();
  }
  Result<StepReport> compute_gradients(const ModelState& state, const BatchView& batch,
                                       GradientView out) override {
    CHECK(out.count == 4);
    CHECK(state.buffers().count == 1);
    out.as<float>()[3] = state.buffers().as<float>()[0] + 1;
    return show(batch);
  }
  Result<StepReport> evaluate(const ModelState&, const BatchView& batch) override { return show(batch); }
  Result<std::vector<float>> predict(const ModelState&, const BatchView& batch) override {
    static_cast<void>(show(batch));
    return std::vector<float>();
  }

 private:
  StepReport show(const BatchView& batch) {
    shown_.assign(batch.features.begin(), batch.features.end());
    return {.rows = batch.rows};
  }
  ModelLayout layout_;
  std::vector<float>& shown_;
};

/// Rows of a sensor: small numbers, large ones far from 0, one that never changes, and one that is 0.
struct Sensor {
  std::vector<float> batch(std::size_t rows) {
    std::vector<float> features;
    for (std::size_t i = 0; i < rows; ++i)
      features.insert(features.end(), {static_cast<float>(0.01 * rng.normal()),
                                       static_cast<float>(101'325 + 20 * rng.normal()), 7.5F, 0.0F});
    all.insert(all.end(), features.begin(), features.end());
    return features;
  }
  [[nodiscard]] double mean(std::size_t column) const {
    double sum = 0;
    for (std::size_t i = column; i < all.size(); i += columns) sum += all[i];
    return sum / (static_cast<double>(all.size()) / columns);
  }
  [[nodiscard]] double variance(std::size_t column) const {
    double sum = 0;
    for (std::size_t i = column; i < all.size(); i += columns) sum += std::pow(all[i] - mean(column), 2);
    return sum / (static_cast<double>(all.size()) / columns);
  }
  Rng rng{4};
  std::vector<float> all;
};

struct Fixture {
  explicit Fixture(double rows = 10'000)
      : device(make_host_device()),
        trainer(make_normalizing(std::make_unique<Showing>(shown), *device, {columns, rows})),
        state(ModelState::create(trainer->layout(), *device).value()),
        out_memory(device->allocate(4 * trainer->layout().contribution()).value()),
        out(out_memory->view(Scalar::f32, trainer->layout().contribution())) {
    REQUIRE(trainer->initialize(state, 1));
  }
  static BatchView view(const std::vector<float>& features) {
    static const std::vector<float> targets(10'000);
    const std::size_t rows = features.size() / columns;
    return {features, std::span(targets).first(rows), rows, {}};
  }
  /// Trains, and makes the buffers of the contribution the state's.
  void train(const std::vector<float>& features) {
    REQUIRE(trainer->compute_gradients(state, view(features), out));
    copy_host_numbers(out.slice(3, out.count - 3), state.buffers());
  }
  [[nodiscard]] std::span<const float> statistics() const { return state.buffers().as<float>().subspan(1); }

  std::vector<float> shown;
  std::unique_ptr<Device> device;
  std::unique_ptr<Trainer> trainer;
  ModelState state;
  std::unique_ptr<Memory> out_memory;
  GradientView out;
};

}  // namespace

TEST_CASE("Normalizer: mean and deviation are those of all rows that were trained, far from 0, too") {
  Fixture f;
  Sensor sensor;
  for (int i = 0; i < 40; ++i) f.train(sensor.batch(25));
  const auto known = f.statistics();
  CHECK(known[0] == 1000);
  for (std::size_t column = 0; column < columns; ++column) {
    INFO(column);
    CHECK(known[1 + column] == doctest::Approx(sensor.mean(column)).epsilon(1e-6));
    CHECK(known[1 + columns + column] == doctest::Approx(sensor.variance(column)).epsilon(0.002));
  }
  // What the model sees of new rows.
  const auto rows = sensor.batch(2000);
  REQUIRE(f.trainer->evaluate(f.state, Fixture::view(rows)));
  for (std::size_t column = 0; column < columns; ++column) {
    INFO(column);
    double sum = 0, squares = 0;
    for (std::size_t i = column; i < f.shown.size(); i += columns) {
      sum += f.shown[i];
      squares += f.shown[i] * f.shown[i];
    }
    CHECK(std::abs(sum / 2000) < 0.1);
    CHECK(squares / 2000 == doctest::Approx(column < 2 ? 1 : 0).epsilon(0.1));
  }
}

TEST_CASE("Normalizer: the first batch is normalized by itself, and no model sees raw rows in training") {
  Fixture f;
  Sensor sensor;
  f.train(sensor.batch(50));
  double largest = 0;
  for (const float x : f.shown) largest = std::max<double>(largest, std::abs(x));
  CHECK(largest < 5);
  CHECK(f.state.buffers().as<float>()[0] == 1);  // the model's own buffer is where it was
}

TEST_CASE("Normalizer: after so many rows nothing moves any more") {
  Fixture f(100);
  Sensor sensor;
  for (int i = 0; i < 4; ++i) f.train(sensor.batch(25));
  const std::vector<float> before(f.statistics().begin(), f.statistics().end());
  CHECK(before[0] == 100);
  std::vector<float> far(100, 1e6F);
  f.train(far);
  CHECK(std::vector<float>(f.statistics().begin(), f.statistics().end()) == before);
}

TEST_CASE("Normalizer: nothing is known of nothing, and neither evaluation nor an empty batch changes that") {
  Fixture f;
  Sensor sensor;
  const auto rows = sensor.batch(3);
  REQUIRE(f.trainer->predict(f.state, Fixture::view(rows)));
  CHECK(f.shown == rows);
  f.train({});
  CHECK(f.statistics()[0] == 0);
}

TEST_CASE("Normalizer: two states of one trainer keep apart") {
  Fixture f;
  Sensor sensor;
  auto other = ModelState::create(f.trainer->layout(), *f.device).value();
  f.train(sensor.batch(25));
  REQUIRE(f.trainer->compute_gradients(other, Fixture::view(std::vector<float>(8, 3.0F)), f.out));
  CHECK(f.out.as<float>()[4] == 2);  // rows
  CHECK(f.out.as<float>()[5] == 3);  // mean
  CHECK(f.statistics()[0] == 25);
}

TEST_CASE("Normalizer: layout says what was added, behind the model's own buffers") {
  Fixture f;
  const ModelLayout& layout = f.trainer->layout();
  CHECK(layout.buffers == 1 + 1 + 2 * columns);
  REQUIRE(layout.buffer_slots.size() == 4);
  CHECK(layout.buffer_slots[1].name == "normalize.rows");
  CHECK(layout.buffer_slots[2].name == "normalize.mean");
  CHECK(layout.buffer_slots[3].name == "normalize.variance");
  CHECK(layout.buffer_slots[3].begin == 2 + columns);
  CHECK(layout.buffer_slots[3].count == columns);
}
