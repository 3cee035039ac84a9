#include <doctest/doctest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "devices/device.h"
#include "runtime/state/safetensors.h"

using namespace rivulet;
using namespace rivulet::runtime;

TEST_CASE("Safetensors: batch norm's counts are the steps made, whole numbers before all others") {
  devices::ModelLayout layout;
  layout.parameters = 3;
  layout.buffers = 1;
  layout.parameter_slots = {{"bn.weight", {3}, 0, 3}};
  layout.buffer_slots = {{"bn.running_mean", {1}, 0, 1}};
  layout.batch_counts = {"bn.num_batches_tracked", "last.num_batches_tracked"};
  const auto device = devices::make_host_device();
  const AgreedState state{devices::ModelState::create(layout, *device).value(), {2, 1234}, 9, {}};
  const auto bytes = encode_safetensors({"cnn"}, state, exported_model(state), {});
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const auto header =
      nlohmann::json::parse(std::string(reinterpret_cast<const char*>(bytes.data()) + sizeof length, length));
  const auto steps_at = [&](std::size_t begin) {
    std::int64_t steps = 0;
    std::memcpy(&steps, bytes.data() + sizeof length + length + begin, sizeof steps);
    return steps;
  };
  CHECK(header["bn.num_batches_tracked"] ==
        nlohmann::json{{"dtype", "I64"}, {"shape", nlohmann::json::array()}, {"data_offsets", {0, 8}}});
  CHECK(header["last.num_batches_tracked"]["data_offsets"] == nlohmann::json{8, 16});
  CHECK(steps_at(0) == 1234);
  CHECK(steps_at(8) == 1234);
  CHECK(header["bn.weight"]["data_offsets"] == nlohmann::json{16, 28});
  CHECK(header["bn.running_mean"]["data_offsets"] == nlohmann::json{28, 32});
  CHECK(bytes.size() == sizeof length + length + 32);
}

TEST_CASE("Safetensors: what the optimizer remembers is a file of its own, named by array and parameter") {
  devices::ModelLayout layout;
  layout.parameters = 3;
  layout.parameter_slots = {{"fc.weight", {2}, 0, 2}, {"fc.bias", {1}, 2, 1}};
  layout.optimizer_arrays = {{.name = "first"}, {.name = "second"}};
  const auto device = devices::make_host_device();
  AgreedState state{devices::ModelState::create(layout, *device).value(), {2, 7}, 9, {}};
  for (std::size_t i = 0; i < 3; ++i) {
    state.model.optimizer_array(0).as<float>()[i] = static_cast<float>(i);
    state.model.optimizer_array(1).as<float>()[i] = static_cast<float>(10 + i);
  }
  const auto bytes = encode_optimizer({"mlp"}, state, {});
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const auto header =
      nlohmann::json::parse(std::string(reinterpret_cast<const char*>(bytes.data()) + sizeof length, length));
  CHECK(header["__metadata__"]["stamp"] == "2.7");
  CHECK(header["first.fc.weight"]["data_offsets"] == nlohmann::json{0, 8});
  CHECK(header["first.fc.bias"]["data_offsets"] == nlohmann::json{8, 12});
  CHECK(header["second.fc.weight"]["shape"] == nlohmann::json{2});
  CHECK(header["second.fc.bias"]["data_offsets"] == nlohmann::json{20, 24});
  CHECK(bytes.size() == sizeof length + length + 24);
  const float expected[] = {0, 1, 2, 10, 11, 12};
  CHECK(std::memcmp(bytes.data() + sizeof length + length, expected, sizeof expected) == 0);
}
