#include "devices/average.h"

#include <algorithm>
#include <vector>

#include "core/vector_code.h"
#include "devices/host_memory.h"

namespace rivulet::devices {
namespace {

template <class T>
[[gnu::always_inline]] inline void move(T* __restrict average, const T* __restrict to, std::size_t count,
                                        T weight) {
  for (std::size_t i = 0; i < count; ++i) average[i] += weight * (to[i] - average[i]);
}

RIVULET_VECTOR_CODE void move_f32(float* average, const float* to, std::size_t count, float weight) {
  move(average, to, count, weight);
}

/// Minimum window, in synchronizations: a shorter average is as noisy as the last parameters.
constexpr double syncs_min = 4;

}  // namespace

Status follow_average(ModelState& state, double rows, Device& device) {
  const double window = state.layout().average_rows;
  if (window == 0 || rows == 0) return ok();
  double& known = state.statistics().averaged_rows;
  const double before = std::min(known, std::max(window, syncs_min * rows));
  const double weight = rows / (before + rows);
  known = before + rows;
  auto seen = device.to_host(state.parameters());
  if (!seen) return seen.error();
  GradientView to = seen.value();
  std::vector<std::byte> kept;
  if (!state.parameters().host_readable()) {  // the copy is valid until the next to_host()
    kept.assign(to.host_bytes().begin(), to.host_bytes().end());
    to.data = kept.data();
  }
  return change_on_host(device, state.average(), [&](const GradientView& average) {
    if (before == 0) return copy_host_numbers(to, average);
    if (average.scalar == Scalar::f32)
      move_f32(average.as<float>().data(), to.as<float>().data(), average.count, static_cast<float>(weight));
    else
      move(average.as<double>().data(), to.as<double>().data(), average.count, weight);
  });
}

}  // namespace rivulet::devices
