// The device that speaks to CUDA, linked with CUDA's own runtime wherever LibTorch is. Where no GPU is, it
// must say so.
#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "devices/cuda_device.h"
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
  CHECK(contains(gpu.error().message, "CUDA"));  // in the words of CUDA's runtime
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

// A GPU is the one thing that a machine may lack.
TEST_CASE("CUDA: memory is pinned, zeroed and the host's, and trainers compute on the GPU" *
          doctest::skip(!gpu_is_here())) {
  const auto gpu = std::move(make_cuda_device(0)).value();
  CHECK(gpu->name() == "cuda:0");
  CHECK(gpu->computes_on().gpu == 0);
  CHECK(gpu->computes_on().copies);
  const auto memory = std::move(gpu->allocate(4000)).value();
  const GradientView view = memory->view(Scalar::f32, 1000);
  CHECK(view.memory == MemoryKind::pinned);
  for (const float x : view.as<float>()) REQUIRE(x == 0.0F);
  CHECK(gpu->to_host(view).value().data == view.data);
  CHECK(!make_cuda_device(1000));
  CHECK(!gpu->allocate(std::size_t{1} << 60));
  CHECK(gpu->allocate(0));
}
