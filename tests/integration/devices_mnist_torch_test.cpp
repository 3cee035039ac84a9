// A real model on real images: the whole device side without a group.
#include <doctest/doctest.h>

#include <vector>

#include "stream/dataset.h"
#include "tests/support/model_fixture.h"
#include "tests/support/places.h"
#include "tests/support/sgd.h"

using namespace rivulet;
using namespace rivulet::devices;
using namespace rivulet::testing;

namespace {

constexpr std::size_t pixels = 28 * 28;

/// The first images of a split, normalised, in device memory.
Rows images(const ModelConfig& config, stream::Split split, std::size_t count) {
  const auto data = stream::open_dataset(source_path("examples/mnist/data"), split);
  REQUIRE_MESSAGE(data, (data ? "" : data.error().message));
  REQUIRE(data.value()->size() >= count);
  Rows rows(config, count, 0);
  for (std::size_t row = 0; row < count; ++row) {
    const std::span<const std::byte> value = data.value()->value(row);
    REQUIRE(value.size() == 1 + pixels);
    rows.targets()[row] = static_cast<float>(std::to_integer<int>(value[0]));
    for (std::size_t i = 0; i < pixels; ++i) {
      rows.features()[row * pixels + i] =
          static_cast<float>(std::to_integer<int>(value[1 + i])) * 0.0127288F - 0.4242F;
    }
  }
  return rows;
}

/// Number of 2 000 unseen images that are predicted correctly after training on 30 000 others.
std::uint64_t correct_after_training(const ModelConfig& config) {
  const auto device = make_host_device();
  const auto trainer = make_trainer(config, *device);
  ModelState state = make_state(*trainer, *device, 42);
  const auto memory = make_contribution(trainer->layout(), *device);
  const GradientView out = view_of(*memory, trainer->layout());
  const Rows training = images(config, stream::Split::train, 30000);
  const Rows held_out = images(config, stream::Split::test, 2000);
  constexpr std::size_t batch = 50;
  for (std::size_t first = 0; first < 30000; first += batch) {
    REQUIRE(trainer->compute_gradients(state, training.view(first, batch), out));
    devices::sgd_step(state, out, {0.02, 0.9, 0, 0}, 1.0);
  }
  const StepReport report = trainer->evaluate(state, held_out.all()).value();
  CHECK(report.rows == 2000);
  CHECK(report.finite);
  MESSAGE("held-out accuracy " << static_cast<double>(report.correct) / 2000);
  return report.correct;
}

}  // namespace

TEST_CASE("LeNet-5 learns handwritten digits: over 90 % on images it never saw after 30 000 rows") {
  prepare_process(1);
  const std::uint64_t correct = correct_after_training(config_of("lenet5"));
  CHECK(correct > 1800);
  ModelConfig half = config_of("lenet5");
  half.autocast_bfloat16 = true;
  const std::uint64_t correct_half = correct_after_training(half);
  CHECK(correct_half > correct - 30);  // a point and a half; seeds differ by about one
}
