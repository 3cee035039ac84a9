// Outputs of an exported model for features as they are in the records.
#include "runtime/state/exported_model.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/rng.h"
#include "devices/host_memory.h"
#include "devices/normalizer.h"
#include "devices/trainer.h"
#include "runtime/state/safetensors.h"

using namespace rivulet;
using namespace rivulet::runtime;

namespace {

constexpr std::size_t columns = 3;
constexpr std::size_t outputs = 2;

/// A linear model behind a normalization, after some batches of sensors around `mean`.
struct Job {
  explicit Job(double mean, Scalar scalar = Scalar::f32, int batches = 20, bool foldable = true)
      : rng(5), around(mean) {
    devices::ModelConfig config;
    config.name = "linear";
    config.input = {columns};
    config.outputs = outputs;
    config.scalar = scalar;
    for (const auto* entry : devices::builtin_models())
      if (entry->name == "linear") {
        trainer = devices::make_normalizing(
            entry->make(config, *device).value(), *device,
            {.features = columns, .window = 1e6, .linear_first = foldable && entry->linear_first});
      }
    state = std::make_unique<AgreedState>(
        AgreedState{devices::ModelState::create(trainer->layout(), *device).value(), {1, 1}, 0, {}});
    REQUIRE(trainer->initialize(state->model, 3));
    const std::size_t count = trainer->layout().contribution();
    const auto memory = device->allocate(count * bytes_of(scalar)).value();
    const auto out = memory->view(scalar, count);
    for (int i = 0; i < batches; ++i) {
      const auto features = rows(32);
      REQUIRE(trainer->compute_gradients(state->model, view(features), out));
      devices::copy_host_numbers(out.slice(trainer->layout().parameters, trainer->layout().buffers),
                                 state->model.buffers());
      REQUIRE(devices::follow_columns(state->model, 32, *device));
    }
  }
  /// A feature that varies much, one that varies little, and a constant.
  std::vector<float> rows(std::size_t n) {
    std::vector<float> all;
    for (std::size_t i = 0; i < n; ++i)
      all.insert(all.end(), {static_cast<float>(around + 20 * rng.normal()),
                             static_cast<float>(0.01 * rng.normal()), 7.5F});
    return all;
  }
  BatchView view(const std::vector<float>& features) {
    targets.assign(features.size() / columns, 1.0F);
    return {features, targets, targets.size(), {}};
  }
  /// w x + b of the export, on unnormalized features.
  [[nodiscard]] std::vector<double> plain(const ExportedModel& model, const std::vector<float>& x) const {
    std::vector<double> numbers(trainer->layout().parameters);
    const bool f32 = trainer->layout().scalar == Scalar::f32;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      float small = 0;
      f32 ? static_cast<void>(std::memcpy(&small, model.parameters.data() + i * sizeof small, sizeof small))
          : static_cast<void>(std::memcpy(&numbers[i], model.parameters.data() + i * 8, 8));
      if (f32) numbers[i] = small;
    }
    std::vector<double> all;
    for (std::size_t row = 0; row < x.size() / columns; ++row)
      for (std::size_t o = 0; o < outputs; ++o) {
        double sum = numbers[outputs * columns + o];
        for (std::size_t i = 0; i < columns; ++i) sum += numbers[o * columns + i] * x[row * columns + i];
        all.push_back(sum);
      }
    return all;
  }

  Rng rng;
  double around;
  std::unique_ptr<devices::Device> device = devices::make_host_device();
  std::unique_ptr<devices::Trainer> trainer;
  std::unique_ptr<AgreedState> state;
  std::vector<float> targets;
};

nlohmann::json header_of(const std::vector<std::byte>& file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  return nlohmann::json::parse(
      std::string(reinterpret_cast<const char*>(file.data()) + sizeof length, length));
}

}  // namespace

TEST_CASE("Exported model: folded, it gives for features as they came what the device gives") {
  for (const Scalar scalar : {Scalar::f32, Scalar::f64}) {
    Job job(60, scalar);
    const auto model = exported_model(*job.state);
    CHECK(model.normalization == Normalization::folded);
    const auto x = job.rows(50);
    const auto theirs = job.plain(model, x);
    const auto ours = job.trainer->predict(job.state->model, job.view(x)).value();
    REQUIRE(theirs.size() == ours.size());
    for (std::size_t i = 0; i < ours.size(); ++i) CHECK(theirs[i] == doctest::Approx(ours[i]).epsilon(1e-5));
  }
}

TEST_CASE("Exported model: what cannot be folded without loss, or into no layer, is left to who uses it") {
  Job far(1e6);
  const auto model = exported_model(*far.state);
  CHECK(model.normalization == Normalization::separate);
  const auto before = far.state->model.parameters().host_bytes();
  CHECK(std::equal(before.begin(), before.end(), model.parameters.begin(), model.parameters.end()));
  Job near(60, Scalar::f32, 20, false);
  CHECK(exported_model(*near.state).normalization == Normalization::separate);
  Job fresh(60, Scalar::f32, 0);
  CHECK(exported_model(*fresh.state).normalization == Normalization::none);
}

TEST_CASE(
    "Safetensors: the normalization is in the metadata and in no tensor, so that every name is the model's") {
  Job job(60);
  const auto header = header_of(encode_safetensors({"linear", {{"features", R"(["a","b","c"])"}}}, *job.state,
                                                   exported_model(*job.state), {}));
  std::vector<std::string> names;
  for (const auto& [name, slot] : header.items()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"__metadata__", "bias", "weight"});
  const auto& notes = header["__metadata__"];
  CHECK(notes["features"] == R"(["a","b","c"])");
  CHECK(notes["normalization"] == "folded");
  const auto mean = nlohmann::json::parse(notes["normalization.mean"].get<std::string>());
  const auto factor = nlohmann::json::parse(notes["normalization.factor"].get<std::string>());
  REQUIRE(mean.size() == columns);
  CHECK(mean[0].get<double>() == doctest::Approx(60).epsilon(0.05));
  CHECK(1 / factor[0].get<double>() == doctest::Approx(20).epsilon(0.1));
  CHECK(factor[2] == 0);  // it is constant
}
