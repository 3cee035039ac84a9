// One suite for every Device: memory, host views, and a model with the same bits on each.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "devices/cuda_device.h"
#include "devices/modeled_device.h"
#include "tests/support/copying_device.h"
#include "tests/support/model_fixture.h"
#include "tests/support/sgd.h"

using namespace rivulet;
using namespace rivulet::devices;
using namespace rivulet::testing;

namespace {

struct Candidate {
  std::string name;
  std::function<std::unique_ptr<Device>(VirtualClock&)> make;
  const ModelEntry* linear;
};

/// Includes a GPU if present.
std::vector<Candidate> candidates() {
  std::vector<Candidate> all = {
      {"host", [](VirtualClock&) { return make_host_device(); }, &model_entry("linear")},
      {"modeled", [](VirtualClock& clock) { return make_modeled_device({}, clock); }, &model_entry("linear")},
      {"copying", [](VirtualClock&) -> std::unique_ptr<Device> { return std::make_unique<CopyingDevice>(); },
       &copying_linear},
  };
  if (make_cuda_device(0))
    all.push_back({"cuda:0", [](VirtualClock&) { return std::move(make_cuda_device(0)).value(); },
                   &model_entry("linear")});
  return all;
}

void for_each_device(const std::function<void(Device&, const Candidate&)>& check) {
  for (const Candidate& candidate : candidates()) {
    CAPTURE(candidate.name);
    VirtualClock clock;
    const auto device = candidate.make(clock);
    CHECK(device->name() == candidate.name);
    check(*device, candidate);
  }
}

std::vector<float> on_host(Device& device, const GradientView& own) {
  const GradientView host = device.to_host(own).value();
  const auto numbers = host.as<float>();
  return {numbers.begin(), numbers.end()};
}

/// Parameters after five steps on rows of a seed, gathered as by a worker.
Digest train_five_steps(Device& device, const ModelEntry& entry) {
  const ModelConfig config = config_of("linear");
  const auto trainer = std::move(entry.make(config, device)).value();
  ModelState state = make_state(*trainer, device, 5);
  const auto memory = make_contribution(trainer->layout(), device);
  const GradientView own = view_of(*memory, trainer->layout());
  for (std::uint64_t step = 0; step < 5; ++step) {
    const Rows rows(config, 9, 100 + step);
    REQUIRE(trainer->compute_gradients(state, rows.all(), own));
    device.charge({9});
    const std::vector<float> contribution = on_host(device, own);
    std::vector<float> agreed = contribution;  // of a group of one
    const GradientView host{reinterpret_cast<std::byte*>(agreed.data()), agreed.size(), Scalar::f32};
    REQUIRE(device.from_host(host, own));
    REQUIRE(devices::apply_gradient(devices::config_of({}), state, host, 1.0, 1, device));
  }
  return digest_of_state(state, device);
}

}  // namespace

TEST_CASE("Device: memory is zeroed, aligned, and as large as asked for") {
  for_each_device([](Device& device, const Candidate&) {
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{4}, std::size_t{1000}, std::size_t{1} << 20}) {
      const auto memory = std::move(device.allocate(bytes)).value();
      CHECK(memory->bytes() == bytes);
      const GradientView view = memory->view(Scalar::f32, bytes / 4);
      CHECK(view.count == bytes / 4);
      CHECK(reinterpret_cast<std::uintptr_t>(view.data) % 64 == 0);
      for (const float x : on_host(device, view)) REQUIRE(x == 0.0F);
    }
  });
}

TEST_CASE("Device: shared memory can be written by the host") {
  for_each_device([](Device& device, const Candidate&) {
    const auto memory = std::move(device.allocate_shared(400)).value();
    const GradientView view = memory->view(Scalar::f32, 100);
    REQUIRE(view.host_readable());
    for (const float x : view.as<float>()) REQUIRE(x == 0.0F);
    view.as<float>()[99] = 1.0F;
  });
}

TEST_CASE("Device: what the host writes back is what it reads again, slices included") {
  for_each_device([](Device& device, const Candidate&) {
    const auto memory = std::move(device.allocate(8 * sizeof(float))).value();
    const GradientView own = memory->view(Scalar::f32, 8);
    std::vector<float> written{1, 2, 3, 4, 5, 6, 7, 8};
    REQUIRE(device.from_host({reinterpret_cast<std::byte*>(written.data()), 8, Scalar::f32}, own));
    CHECK(on_host(device, own) == written);
    CHECK(on_host(device, own.slice(2, 3)) == std::vector<float>{3, 4, 5});
    const GradientView host = device.to_host(own).value();
    host.as<float>()[0] = 9;
    REQUIRE(device.from_host(host, own));
    CHECK(on_host(device, own)[0] == 9.0F);
  });
}

TEST_CASE("Device: memory that cannot be had is an error that names the size") {
  for_each_device([](Device& device, const Candidate&) {
    constexpr std::size_t too_much = SIZE_MAX - 7;
    for (const auto& memory : {device.allocate(too_much), device.allocate_shared(too_much)}) {
      REQUIRE(!memory);
      CHECK(memory.error().code == ErrorCode::unavailable);
      CHECK(memory.error().message.find(std::to_string(too_much)) != std::string::npos);
    }
  });
}

TEST_CASE("Device: the same model trained on each of them has the same bits") {
  std::vector<Digest> digests;
  for_each_device([&](Device& device, const Candidate& candidate) {
    digests.push_back(train_five_steps(device, *candidate.linear));
  });
  REQUIRE(digests.size() >= 3);
  for (const Digest& digest : digests) CHECK(digest == digests[0]);
}

TEST_CASE("Device: only the copying one copies, and its memory is marked") {
  CopyingDevice device;
  const auto memory = std::move(device.allocate(16)).value();
  const GradientView own = memory->view(Scalar::f32, 4);
  CHECK(own.memory == MemoryKind::device);
  CHECK(!own.host_readable());
  const GradientView host = device.to_host(own).value();
  CHECK(host.data != own.data);
  REQUIRE(device.from_host(host, own));
  CHECK(device.copies_to_host() == 1);
  CHECK(device.copies_from_host() == 1);
  const auto plain = make_host_device();
  const auto plain_memory = std::move(plain->allocate(16)).value();
  const GradientView plain_view = plain_memory->view(Scalar::f32, 4);
  CHECK(plain->to_host(plain_view).value().data == plain_view.data);
}

TEST_CASE("Device: a profile moves its clock by what the work would have taken; no rows cost nothing") {
  VirtualClock clock;
  const auto device = make_modeled_device({std::chrono::milliseconds(2), 1000}, clock);
  const TimePoint start = clock.now();
  device->charge({50});
  CHECK(clock.now() - start == std::chrono::milliseconds(52));
  device->charge({0});
  CHECK(clock.now() - start == std::chrono::milliseconds(52));
}
