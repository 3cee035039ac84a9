// Rare classes: the gradient weights rows by class, with counts agreed by the group.
#include "devices/class_balance.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "devices/average.h"
#include "devices/host_memory.h"
#include "tests/support/sgd.h"

using namespace rivulet;
using namespace rivulet::devices;

namespace {

constexpr std::size_t classes = 2;

struct Balanced {
  explicit Balanced(std::vector<float> weights = {}, double average_rows = 0) {
    ModelConfig config;
    config.name = "linear";
    config.input = {1};
    config.outputs = classes;
    config.scalar = Scalar::f64;
    config.average_rows = average_rows;
    for (const auto* entry : builtin_models())
      if (entry->name == "linear")
        trainer = make_balancing(entry->make(config, *device).value(), *device, classes, std::move(weights),
                                 10'000);
    state.emplace(ModelState::create(trainer->layout(), *device).value());
    REQUIRE(trainer->initialize(*state, 1));
    for (double& w : state->parameters().as<double>()) w = 0;
    const std::size_t count = trainer->layout().contribution();
    memory = device->allocate(count * sizeof(double)).value();
    out = memory->view(Scalar::f64, count);
  }
  /// The gradient of the bias of class 0: 0.5 - share of class 0 with equal weights.
  double gradient(const std::vector<float>& labels) {
    const std::vector<float> x(labels.size(), 0.0F);
    report = trainer->compute_gradients(*state, {x, labels, labels.size(), {}}, out).value();
    return out.as<double>()[classes];
  }
  void agree(double rows) {
    const auto& layout = state->layout();
    copy_host_numbers(out.slice(layout.parameters, layout.buffers), state->buffers());
    REQUIRE(follow_classes(*state, rows, *device));
  }
  std::unique_ptr<Device> device = make_host_device();
  std::unique_ptr<Trainer> trainer;
  std::optional<ModelState> state;
  std::unique_ptr<Memory> memory;
  GradientView out;
  StepReport report;
};

const std::vector<float> three_to_one{0, 0, 0, 1};

}  // namespace

TEST_CASE("Class balance: given weights scale rows in the gradient, and no loss that is reported") {
  Balanced alike({1, 1});
  CHECK(alike.gradient(three_to_one) == doctest::Approx(0.5 - 0.75));
  Balanced weighted({1, 3});
  CHECK(weighted.gradient(three_to_one) == doctest::Approx(0));
  CHECK(weighted.report.loss_sum == doctest::Approx(alike.report.loss_sum));
  CHECK(weighted.trainer->layout().buffers == 0);
}

TEST_CASE("Class balance: auto counts the rows of each class that the group has trained, exactly") {
  Balanced it;
  CHECK(it.gradient(three_to_one) == doctest::Approx(-0.25));  // without counts
  it.agree(4);
  CHECK(it.state->statistics().class_rows == std::vector<double>{3, 1});
  // Weights are proportional to one over the roots of 3 and 1, with mean 1.
  const double root = std::sqrt(3.0);
  CHECK(it.gradient(three_to_one) == doctest::Approx((-1.5 / root + 0.5) / (root + 1)));
  // Counts of two devices, weighted by rows: those of the group.
  it.gradient(std::vector<float>(100, 0.0F));
  it.agree(300);
  CHECK(it.state->statistics().class_rows == std::vector<double>{303, 1});
}

TEST_CASE("Class balance: rows of long ago fade: shares that change are followed within the window") {
  Balanced it;
  it.gradient(std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
  it.agree(100'000);
  for (int i = 0; i < 40; ++i) {
    it.gradient(std::vector<float>{0, 1, 1, 1, 1, 1, 1, 1, 1, 1});
    it.agree(1000);
  }
  const auto& rows = it.state->statistics().class_rows;
  CHECK(rows[0] + rows[1] == doctest::Approx(10'000));
  CHECK(rows[1] > 0.85 * 10'000);
}

TEST_CASE("Class balance: own steps add up, and no weight is above 100") {
  Balanced it;
  const auto& layout = it.state->layout();
  for (int step = 0; step < 3; ++step) {
    it.gradient(three_to_one);
    copy_host_numbers(it.out.slice(layout.parameters, layout.buffers), it.state->buffers());
  }
  REQUIRE(follow_classes(*it.state, 12, *it.device));
  CHECK(it.state->statistics().class_rows == std::vector<double>{9, 3});
  it.state->statistics().class_rows = {1e6, 0};
  CHECK(it.gradient({1}) == doctest::Approx(0.5 * 100));
}

TEST_CASE("Class balance: what a model takes each row for is told") {
  Balanced it({1, 1});
  it.state->parameters().as<double>()[classes] = 1;  // always class 0
  it.gradient(three_to_one);
  CHECK(std::ranges::equal(it.report.answers, std::vector<float>{0, 0, 0, 0}));
}

TEST_CASE("Average: it is the parameters at first, and follows over its window") {
  Balanced it({1, 1}, 100);
  const auto w = it.state->parameters().as<double>();
  CHECK(averaged(*it.state).parameters().data == it.state->parameters().data);  // empty so far
  w[0] = 4;
  REQUIRE(follow_average(*it.state, 10, *it.device));
  CHECK(it.state->average().as<double>()[0] == 4);
  w[0] = 8;
  REQUIRE(follow_average(*it.state, 10, *it.device));
  CHECK(it.state->average().as<double>()[0] == 6);
  for (int i = 0; i < 20; ++i) REQUIRE(follow_average(*it.state, 10, *it.device));
  CHECK(it.state->average().as<double>()[0] == doctest::Approx(8).epsilon(0.1));
  w[0] = 19;
  REQUIRE(follow_average(*it.state, 10, *it.device));
  CHECK(it.state->average().as<double>()[0] == doctest::Approx(9).epsilon(0.02));  // one part in eleven
  CHECK(averaged(*it.state).parameters().data == it.state->average().data);
}

TEST_CASE("Clipping: by default at ten times the usual norm, which an outlier hardly moves") {
  Balanced it({1, 1});
  OptimizerConfig config = config_of({.learning_rate = 1, .momentum = 0});
  config.clip_usual = true;
  const auto step = [&](double size) {
    for (double& g : it.out.as<double>()) g = 0;
    it.out.as<double>()[0] = size;
    const double before = it.state->parameters().as<double>()[0];
    REQUIRE(apply_gradient(config, *it.state, it.out, 1, 1, *it.device));
    return before - it.state->parameters().as<double>()[0];
  };
  for (int i = 0; i < 10; ++i) CHECK(step(2) == doctest::Approx(2));
  CHECK(step(15) == doctest::Approx(15));
  const double usual = it.state->statistics().usual_norm;
  CHECK(step(1e6) == doctest::Approx(10 * usual).epsilon(1e-6));
  CHECK(it.state->statistics().usual_norm < 2 * usual);
  config.clip_usual = false;
  CHECK(step(1e6) == doctest::Approx(1e6));
}
