// Columns of any scale reach the model with mean 0 and deviation 1, however long the stream is. No single
// value spoils that, and a change of the normalization preserves the model's function.
#include "devices/normalizer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/rng.h"
#include "devices/host_memory.h"

using namespace rivulet;
using namespace rivulet::devices;

namespace {

constexpr std::size_t columns = 4;

/// A model that keeps its input; its one buffer counts batches.
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

/// Rows of a sensor: small values, large ones far from 0, a constant, and one that is always 0.
struct Sensor {
  std::vector<float> batch(std::size_t rows) {
    std::vector<float> features;
    for (std::size_t i = 0; i < rows; ++i)
      features.insert(features.end(), {static_cast<float>(0.01 * rng.normal()),
                                       static_cast<float>(level + 20 * rng.normal()), 7.5F, 0.0F});
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
  double level = 101'325;
  std::vector<float> all;
};

struct Fixture {
  explicit Fixture(double window = 10'000)
      : device(make_host_device()),
        trainer(make_normalizing(std::make_unique<Showing>(shown), *device,
                                 {.features = columns, .window = window, .linear_first = false})),
        state(ModelState::create(layout_with_window(window), *device).value()),
        out_memory(device->allocate(4 * trainer->layout().contribution()).value()),
        out(out_memory->view(Scalar::f32, trainer->layout().contribution())) {
    REQUIRE(trainer->initialize(state, 1));
  }
  /// Without a layer to rewrite, which would make the window ten times as long.
  [[nodiscard]] ModelLayout layout_with_window(double window) const {
    ModelLayout layout = trainer->layout();
    layout.normalized.window = window / 10;
    return layout;
  }
  static BatchView view(const std::vector<float>& features) {
    static const std::vector<float> targets(10'000);
    const std::size_t rows = features.size() / columns;
    return {features, std::span(targets).first(rows), rows, {}};
  }
  /// The device's report on one more batch.
  StepReport compute(const std::vector<float>& features) {
    const auto report = trainer->compute_gradients(state, view(features), out);
    REQUIRE(report);
    copy_host_numbers(out.slice(3, out.count - 3), state.buffers());
    return report.value();
  }
  StepReport train(const std::vector<float>& features) {
    const auto report = compute(features);
    REQUIRE(follow_columns(state, static_cast<double>(features.size() / columns), *device));
    return report;
  }
  [[nodiscard]] const Column& column(std::size_t i) const { return state.columns()[i]; }
  [[nodiscard]] double largest_shown() const {
    double largest = 0;
    for (const float x : shown) largest = std::max<double>(largest, std::abs(x));
    return largest;
  }

  std::vector<float> shown;
  std::unique_ptr<Device> device;
  std::unique_ptr<Trainer> trainer;
  ModelState state;
  std::unique_ptr<Memory> out_memory;
  GradientView out;
};

/// Rows with x in column 1, and the sensor's values in the others.
std::vector<float> rows_with(Sensor& sensor, const std::vector<double>& x) {
  auto rows = sensor.batch(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) rows[i * columns + 1] = static_cast<float>(x[i]);
  return rows;
}

}  // namespace

TEST_CASE("Normalizer: mean and deviation are those of all rows that were trained, far from 0, too") {
  Fixture f;
  Sensor sensor;
  for (int i = 0; i < 40; ++i) f.train(sensor.batch(25));
  for (std::size_t i = 0; i < columns; ++i) {
    INFO(i);
    CHECK(f.column(i).rows == 1000);
    CHECK(f.column(i).mean == doctest::Approx(sensor.mean(i)).epsilon(1e-6));
    CHECK(f.column(i).variance == doctest::Approx(sensor.variance(i)).epsilon(0.002));
  }
  // The model's input for new rows.
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
  CHECK(f.largest_shown() < 5);
  CHECK(f.state.buffers().as<float>()[0] == 1);  // the model's own buffer is unchanged
}

TEST_CASE("Normalizer: own steps before the group knows anything go by the device's own rows") {
  Fixture f;
  Sensor sensor;
  for (int i = 0; i < 4; ++i) {
    f.compute(sensor.batch(25));
    CHECK(f.largest_shown() < 5);
  }
  CHECK(f.column(1).rows == 0);
  REQUIRE(follow_columns(f.state, 100, *f.device));
  CHECK(f.column(1).rows == 100);
  CHECK(f.column(1).mean == doctest::Approx(sensor.mean(1)).epsilon(1e-6));
  CHECK(f.column(1).variance == doctest::Approx(sensor.variance(1)).epsilon(0.01));
}

TEST_CASE("Normalizer: statistics never freeze, and old rows fade with the window") {
  Fixture f(1000);
  Sensor sensor;
  for (int i = 0; i < 200; ++i) f.train(sensor.batch(25));
  sensor.level += 30;  // no outliers: a season begins
  for (int i = 0; i < 200; ++i) f.train(sensor.batch(25));
  CHECK(f.column(1).rows == 1000);
  CHECK(f.column(1).mean == doctest::Approx(101'355).epsilon(3e-5));
  CHECK(std::sqrt(f.column(1).variance) == doctest::Approx(20).epsilon(0.1));
  CHECK(f.column(1).shown_mean == doctest::Approx(f.column(1).mean).epsilon(1e-5));
}

TEST_CASE("Normalizer: one absurd value is clipped, in the statistics and for the model, and counted") {
  for (const double absurd : {1e18, -1e30, 3e38}) {
    Fixture f;
    Sensor sensor;
    for (int i = 0; i < 40; ++i) f.train(sensor.batch(25));
    const Column before = f.column(1);
    const auto report = f.train(rows_with(sensor, {101'300, absurd, 101'330, 101'340}));
    CHECK(f.shown[columns + 1] == 0);
    REQUIRE(report.beyond.size() == columns);
    CHECK(report.beyond[1] == 1);
    CHECK(report.beyond[0] + report.beyond[2] + report.beyond[3] == 0);
    CHECK(std::abs(f.column(1).mean - before.mean) < 1);
    CHECK(std::sqrt(f.column(1).variance) < 1.2 * std::sqrt(before.variance));
  }
}

TEST_CASE("Normalizer: a value far out that may be a reading is clipped") {
  Fixture f;
  Sensor sensor;
  for (int i = 0; i < 40; ++i) f.train(sensor.batch(25));
  const Column before = f.column(1);
  const auto report = f.train(rows_with(sensor, {101'300, 101'825, 101'330, 100'825}));
  CHECK(f.shown[columns + 1] == 8);
  CHECK(f.shown[3 * columns + 1] == -8);
  CHECK(report.beyond[1] == 2);
  CHECK(std::sqrt(f.column(1).variance) < 1.2 * std::sqrt(before.variance));
}

TEST_CASE("Normalizer: of the first rows, too, an absurd value is not a reading") {
  Fixture f;
  Sensor sensor;
  f.train(rows_with(sensor, {101'300, 101'310, 101'350, 1e18, 101'330, 101'320, 101'315, 101'340}));
  CHECK(f.column(1).mean < 101'500);
  CHECK(f.column(1).variance < 1e5);
  // A constant column with a single different value.
  Fixture rest;
  rest.train({0, 1, 7.5F, 0, 0, 1, 7.5F, 0, 0, 1, 7.5F, 1e18F, 0, 1, 7.5F, 0});
  CHECK(rest.column(3).mean == 0);
  CHECK(rest.column(3).shown_deviation == 0);
}

TEST_CASE("Normalizer: first values that no sensor has are none, and what is contributed is finite") {
  for (const double first : {1e30, -3e38, 1.7e18, 9e18}) {
    INFO(first);
    Fixture f;
    Sensor sensor;
    f.train(rows_with(sensor, {first}));
    f.compute(rows_with(sensor, {first, 101'300, 101'310}));
    for (const float x : f.out.as<float>()) CHECK(std::isfinite(x));
    REQUIRE(follow_columns(f.state, 3, *f.device));
    for (int i = 0; i < 40; ++i) f.train(sensor.batch(25));
    CHECK(f.column(1).mean == doctest::Approx(101'325).epsilon(1e-3));
    CHECK(std::sqrt(f.column(1).variance) < 100);
  }
}

TEST_CASE("Normalizer: a stream that begins with an absurd row alone recovers with the rows behind it") {
  Fixture f;
  Sensor sensor;
  f.train(rows_with(sensor, {1e18, 101'300}));
  for (int i = 0; i < 20; ++i) f.train(sensor.batch(25));
  CHECK(f.column(1).mean == doctest::Approx(101'325).epsilon(1e-3));
  CHECK(std::sqrt(f.column(1).variance) < 100);
}

TEST_CASE("Normalizer: one row in a hundred that is a code for nothing stays an outlier for ever") {
  Fixture f;
  Sensor sensor;
  Rng rng(7);
  std::uint64_t counted = 0;
  std::uint64_t codes = 0;
  for (int i = 0; i < 400; ++i) {
    auto rows = sensor.batch(25);
    for (std::size_t row = 0; row < 25; ++row)
      if (rng.uniform() < 0.01) {
        rows[row * columns + 1] = 65'535;
        codes += i >= 8 ? 1 : 0;
      }
    const auto report = f.train(rows);
    counted += report.beyond.empty() ? 0 : report.beyond[1];
  }
  CHECK(counted == codes);
  CHECK(std::sqrt(f.column(1).variance) < 40);
  CHECK(std::abs(f.column(1).mean - 101'325) < 10);
}

TEST_CASE("Normalizer: codes that come in bursts, and a sensor that is broken for a while, move nothing") {
  for (const double code : {65'535.0, -999.0, 100'900.0})  // far out, and a mere 20 deviations
    for (const std::size_t each : {2U, 16U, 25U, 128U}) {
      INFO(code, " in batches of ", each);
      Fixture f;
      Sensor sensor;
      for (int i = 0; i < 80; ++i) f.train(sensor.batch(25));
      const Column before = f.column(1);
      for (std::size_t row = 0; row < 3000; row += each) {
        auto rows = sensor.batch(each);
        for (std::size_t k = 0; k < each;
             ++k)  // ten consecutive ones in each thousand, and a thousand at once
          if ((row + k) % 1000 < 10 || (row + k >= 1500 && row + k < 2500))
            rows[k * columns + 1] = static_cast<float>(code);
        f.train(rows);
      }
      CHECK(std::abs(f.column(1).mean - before.mean) < 6);
      CHECK(std::sqrt(f.column(1).variance) < 1.5 * std::sqrt(before.variance));
    }
}

TEST_CASE("Normalizer: a code that fills a batch is not a lesson, whether or not it could be a reading") {
  Fixture f;
  Sensor sensor;
  for (int i = 0; i < 80; ++i) f.train(sensor.batch(25));
  f.train(rows_with(sensor, std::vector<double>(20, 100'900)));
  for (std::size_t row = 0; row < 20; ++row) CHECK(f.shown[row * columns + 1] == 0);
}

TEST_CASE("Normalizer: so is a code that fills a batch of targets, where no feature is normalized") {
  std::vector<float> shown;
  const auto device = make_host_device();
  const auto trainer = make_normalizing(std::make_unique<Showing>(shown), *device, {.targets = 1});
  auto state = ModelState::create(trainer->layout(), *device).value();
  REQUIRE(trainer->initialize(state, 1));
  const std::size_t count = trainer->layout().contribution();
  const auto memory = device->allocate(4 * count).value();
  const GradientView out = memory->view(Scalar::f32, count);
  Rng rng{4};
  const std::vector<float> features(20);
  const auto compute = [&](const std::vector<float>& targets) {
    const auto report = trainer->compute_gradients(state, {features, targets, targets.size(), {}}, out);
    REQUIRE(report);
    copy_host_numbers(out.slice(3, out.count - 3), state.buffers());
    REQUIRE(follow_columns(state, 20, *device));
  };
  for (int i = 0; i < 80; ++i) {
    std::vector<float> targets;
    for (int row = 0; row < 20; ++row) targets.push_back(static_cast<float>(60 + 3 * rng.normal()));
    compute(targets);
  }
  compute(std::vector<float>(20, -999));
  CHECK(state.columns()[0].mean == doctest::Approx(60).epsilon(0.02));
  CHECK(shown.size() == 20);
}

TEST_CASE("Normalizer: a sensor that is noise for a moment moves nothing") {
  Fixture f;
  Sensor sensor;
  for (int i = 0; i < 80; ++i) f.train(sensor.batch(25));
  const Column before = f.column(1);
  for (int i = 0; i < 8; ++i) {
    auto rows = sensor.batch(25);
    for (std::size_t row = 0; row < 25; ++row)
      rows[row * columns + 1] = static_cast<float>(1e7 * sensor.rng.normal());
    f.train(rows);
  }
  CHECK(std::sqrt(f.column(1).variance) < 1.5 * std::sqrt(before.variance));
}

TEST_CASE("Normalizer: a value far out that alternates with others is a state, and counts in the end") {
  Fixture f;
  Sensor sensor;
  for (int i = 0; i < 80; ++i) f.train(sensor.batch(25));
  for (int i = 0; i < 160; ++i) {
    auto rows = sensor.batch(25);
    for (std::size_t row = 0; row < 8; ++row) rows[row * columns + 1] = 0;
    f.train(rows);
  }
  CHECK(std::sqrt(f.column(1).variance) > 20'000);
}

TEST_CASE("Normalizer: values beyond the limit that go on are a change of the stream, and count") {
  Fixture f;
  Sensor sensor;
  for (int i = 0; i < 400; ++i) f.train(sensor.batch(25));
  sensor.level = 202'650;  // another unit
  for (int i = 0; i < 40; ++i) {
    f.train(sensor.batch(25));
    CHECK(f.largest_shown() <= 8);
  }
  CHECK(f.column(1).mean == doctest::Approx(202'650).epsilon(0.1));
  const auto rows = sensor.batch(100);
  REQUIRE(f.trainer->evaluate(f.state, Fixture::view(rows)));
  CHECK(f.largest_shown() < 4);
}

TEST_CASE("Normalizer: a column at rest is 0, and wakes when it goes on being another value") {
  Fixture f;
  Sensor sensor;
  for (int i = 0; i < 100; ++i) f.train(sensor.batch(25));
  auto rows = sensor.batch(25);
  rows[3] = 1e18F;
  f.train(rows);
  CHECK(f.column(3).shown_deviation == 0);  // a single value has no deviation
  for (int i = 0; i < 40; ++i) {
    rows = sensor.batch(25);
    for (std::size_t row = 0; row < 25; ++row) rows[row * columns + 3] = row % 2 == 0 ? 0.5F : 1.5F;
    f.train(rows);
  }
  CHECK(f.column(3).shown_deviation == doctest::Approx(0.5).epsilon(0.2));
  CHECK(f.column(3).mean == doctest::Approx(1).epsilon(0.15));
  CHECK(f.column(2).shown_deviation == 0);
}

TEST_CASE("Normalizer: a missing value is the mean, and moves nothing") {
  Fixture f;
  Sensor sensor;
  for (int i = 0; i < 40; ++i) f.train(sensor.batch(25));
  const Column before = f.column(1);
  constexpr double missing = std::numeric_limits<double>::quiet_NaN();
  f.train(rows_with(sensor, {missing, missing, missing, missing}));
  for (std::size_t row = 0; row < 4; ++row) CHECK(f.shown[row * columns + 1] == 0);
  CHECK(f.column(1).mean == doctest::Approx(before.mean).epsilon(1e-9));
  CHECK(f.column(1).variance == doctest::Approx(before.variance).epsilon(1e-6));
  // Before the first statistics they are ignored.
  Fixture first;
  first.train(rows_with(sensor, {missing, 10, missing, 30}));
  CHECK(first.column(1).mean == 20);
  CHECK(first.column(1).variance == 100);
}

TEST_CASE("Normalizer: a feature that the first rows lack is not known, and begins with its first values") {
  Fixture f;
  Sensor sensor;
  const auto without = [&](std::size_t rows) {
    return rows_with(sensor, std::vector<double>(rows, std::numeric_limits<double>::quiet_NaN()));
  };
  for (int i = 0; i < 40; ++i) f.train(without(25));
  CHECK(f.column(0).rows == 1000);
  CHECK(f.column(1).rows == 0);
  CHECK(f.shown[1] == 0);
  const auto report = f.train(sensor.batch(25));
  CHECK(report.beyond[1] == 0);
  CHECK(f.shown[1] != 0);
  CHECK(f.largest_shown() < 8);
  CHECK(f.column(1).rows == 25);
  CHECK(f.column(1).mean == doctest::Approx(101'325).epsilon(1e-3));
  CHECK(std::sqrt(f.column(1).variance) < 40);
  // Only one of several devices has it.
  Fixture one;
  Fixture other;
  one.compute(sensor.batch(30));
  other.compute(without(10));
  const auto mine = one.state.buffers().as<float>();
  const auto theirs = other.state.buffers().as<float>();
  for (std::size_t k = 0; k < mine.size(); ++k) mine[k] = 0.75F * mine[k] + 0.25F * theirs[k];
  REQUIRE(follow_columns(one.state, 40, *one.device));
  CHECK(one.column(1).rows == doctest::Approx(30));
  CHECK(one.column(1).mean == doctest::Approx(101'325).epsilon(1e-3));
  CHECK(std::sqrt(one.column(1).variance) < 40);
}

TEST_CASE("Normalizer: devices whose means differ contribute what all of their rows together are") {
  Fixture one;
  Fixture other;
  Sensor low;
  Sensor high;
  high.level = low.level + 60;
  high.rng = Rng(9);
  for (int i = 0; i < 100; ++i) {
    one.compute(low.batch(30));
    other.compute(high.batch(10));
    const auto mine = one.state.buffers().as<float>();
    const auto theirs = other.state.buffers().as<float>();
    for (std::size_t k = 0; k < mine.size(); ++k) mine[k] = theirs[k] = 0.75F * mine[k] + 0.25F * theirs[k];
    REQUIRE(follow_columns(one.state, 40, *one.device));
    REQUIRE(follow_columns(other.state, 40, *other.device));
  }
  CHECK(one.column(1) == other.column(1));
  CHECK(one.column(1).mean == doctest::Approx(low.level + 15).epsilon(1e-5));
  CHECK(std::sqrt(one.column(1).variance) == doctest::Approx(std::sqrt(400 + 0.1875 * 3600)).epsilon(0.03));
}

TEST_CASE("Normalizer: nothing is known of nothing, and neither evaluation nor an empty batch changes that") {
  Fixture f;
  Sensor sensor;
  const auto rows = sensor.batch(3);
  REQUIRE(f.trainer->predict(f.state, Fixture::view(rows)));
  CHECK(f.shown == rows);
  f.train({});
  CHECK(f.column(0).rows == 0);
}

TEST_CASE("Normalizer: layout says what was added, behind the model's own buffers") {
  Fixture f;
  const ModelLayout& layout = f.trainer->layout();
  CHECK(layout.buffers == 1 + 1 + 3 * columns);
  REQUIRE(layout.buffer_slots.size() == 5);
  CHECK(layout.buffer_slots[1].name == "measured.rows");
  CHECK(layout.buffer_slots[4].name == "measured.beyond");
  CHECK(layout.buffer_slots[4].begin == 2 + 2 * columns);
  const ModelLayout own = without_measured(layout);
  CHECK(own.buffers == 1);
  CHECK(own.normalized.size() == 0);
}
