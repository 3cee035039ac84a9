// The CUDA device, linked with CUDA's own runtime in builds with LibTorch. Without a GPU it must report that.
#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "devices/cuda_device.h"
#include "tests/support/model_fixture.h"
#include "tests/support/sgd.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::devices;
using namespace rivulet::testing;

namespace {

bool gpu_is_here() {
  return cuda_facts().size() > 1;
}

}  // namespace

TEST_CASE("CUDA: without a GPU every way to one says why, and auto takes the CPU" *
          doctest::skip(gpu_is_here())) {
  const auto gpu = make_cuda_device(0);
  REQUIRE(!gpu);
  CHECK(gpu.error().code == ErrorCode::unavailable);
  CHECK(contains(gpu.error().message, "no GPU can be used: "));
  CHECK(contains(gpu.error().message, "CUDA"));  // with the message of CUDA's runtime
  const auto asked = make_device("cuda");
  REQUIRE(!asked);
  CHECK(asked.error().message == gpu.error().message);
  CHECK(make_device("auto").value()->name() == "host");
  CHECK(make_device("cpu").value()->name() == "host");
}

TEST_CASE("CUDA: doctor names the version of the runtime, and what the driver can do") {
  const auto facts = cuda_facts();
  REQUIRE(!facts.empty());
  CHECK(facts[0].first == "CUDA");
  CHECK(contains(facts[0].second, "."));
  CHECK(contains(facts[0].second, "driver"));
}

// A GPU is the only requirement that a machine may lack.
TEST_CASE("CUDA: memory is pinned, zeroed and the host's, and trainers compute on the GPU" *
          doctest::skip(!gpu_is_here())) {
  const auto gpu = std::move(make_cuda_device(0)).value();
  CHECK(gpu->name() == "cuda:0");
  CHECK(gpu->computes_on().gpu == 0);
  CHECK(gpu->computes_on().copies_arrays);
  const auto memory = std::move(gpu->allocate(4000)).value();
  const GradientView view = memory->view(Scalar::f32, 1000);
  CHECK(view.memory == MemoryKind::pinned);
  for (const float x : view.as<float>()) REQUIRE(x == 0.0F);
  CHECK(gpu->to_host(view).value().data == view.data);
  CHECK(!make_cuda_device(1000));
  CHECK(!gpu->allocate(std::size_t{1} << 60));
  CHECK(gpu->allocate(0));
}

namespace {

/// A model's output for a batch, and its parameters after ten steps.
struct Learned {
  StepReport report;
  std::vector<double> contribution;
  std::vector<double> parameters;
};

Learned learn_on(Device& device, const ModelConfig& config) {
  const auto trainer = make_trainer(config, device);
  ModelState state = make_state(*trainer, device, 3);
  const auto memory = make_contribution(trainer->layout(), device);
  const GradientView out = view_of(*memory, trainer->layout());
  const Rows batch(config, 48, 3);
  Learned learned;
  for (int step = 0; step < 10; ++step) {
    const auto report = trainer->compute_gradients(state, batch.all(), out);
    REQUIRE_MESSAGE(report, report.error().message);
    if (step == 0) learned = {report.value(), numbers_of(out), {}};
    sgd_step(state, out);
  }
  learned.parameters = numbers_of(state.parameters());
  return learned;
}

}  // namespace

TEST_CASE("CUDA: a pass on the GPU gives what the host's gives, and leads there" *
          doctest::skip(!gpu_is_here())) {
  const auto gpu = std::move(make_cuda_device(0)).value();
  const auto host = make_host_device();
  for (const ModelEntry* entry : builtin_models()) {
    const std::string name(entry->name);
    CAPTURE(name);
    const ModelConfig config = config_of(name);
    const Learned here = learn_on(*host, config);
    const Learned there = learn_on(*gpu, config);
    MESSAGE(name << ": gradient off by " << relative_l2(there.contribution, here.contribution)
                 << ", parameters after ten steps by " << relative_l2(there.parameters, here.parameters));
    // A GPU adds in another order, and multiplies in TF32 where LibTorch permits it: 10 bits of mantissa.
    CHECK(relative_l2(there.contribution, here.contribution) < 5e-3);
    CHECK(relative_l2(there.parameters, here.parameters) < 5e-3);
    CHECK(there.report.loss_sum == doctest::Approx(here.report.loss_sum).epsilon(1e-3));
    CHECK(there.report.rows == here.report.rows);
  }
}

TEST_CASE("CUDA: the same batch gives the same bits on one GPU" * doctest::skip(!gpu_is_here())) {
  const auto gpu = std::move(make_cuda_device(0)).value();
  for (const ModelEntry* entry : builtin_models()) {
    const std::string name(entry->name);
    CAPTURE(name);
    const ModelConfig config = config_of(name);
    CHECK(learn_on(*gpu, config).parameters == learn_on(*gpu, config).parameters);
  }
}
