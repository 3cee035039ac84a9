#pragma once
#include <doctest/doctest.h>

#include <utility>

#include "core/rng.h"
#include "devices/device.h"
#include "runtime/state/agreed_state.h"

/// A state with values in all fields.
namespace rivulet::testing {

inline devices::ModelLayout layout_of(std::size_t parameters, std::size_t buffers,
                                      Scalar scalar = Scalar::f32) {
  return {
      scalar, parameters, buffers, {{"weight", {static_cast<std::int64_t>(parameters)}, 0, parameters}}, {}};
}

template <class T>
inline void fill_with_noise(const GradientView& view, Rng& rng) {
  for (T& x : view.as<T>()) x = static_cast<T>(rng.normal());
}

inline runtime::AgreedState example_state(const devices::ModelLayout& layout, devices::Device& device,
                                          std::uint64_t seed = 1) {
  auto model = devices::ModelState::create(layout, device);
  REQUIRE(model);
  runtime::AgreedState state{std::move(model).value(), {3, 349}, 60'000, {}};
  Rng rng(seed);
  for (const GradientView& view :
       {state.model.parameters(), state.model.optimizer_array(0), state.model.buffers()}) {
    layout.scalar == Scalar::f32 ? fill_with_noise<float>(view, rng) : fill_with_noise<double>(view, rng);
  }
  state.partitions[{0, 0}] = {{7, 0}, {1234, 3}, 1200, 10, 3, {30, 0, 4}, {}};
  state.partitions[{0, 0}].runs = {{{0, 0}, {20, 0}, {50, 0}, 30, 0},
                                   {{0, 0}, {60, 0}, {64, 0}, 4, 2},
                                   {{0, 0}, {90, 1}, {94, 0}, 3, fate_hole}};
  state.partitions[{0, 7}] = {};
  state.partitions[{2, -1}] = {{5, 1}, {9'000'000'000, 4'000'000'000}, 9'000'000'000, 6, 0, {1}, {}};
  state.partitions[{2, -1}].runs = {{{2, -1}, {5, 1}, {6, 0}, 1, 0}};
  return state;
}

}  // namespace rivulet::testing
