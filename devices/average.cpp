#include "devices/average.h"

#include <algorithm>

#include "core/vector_code.h"

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

/// An average of fewer agreements than this has as much noise as the last of them.
constexpr double agreements_least = 4;

}  // namespace

void follow_average(ModelState& state, double rows) {
  const double window = state.layout().average_rows;
  if (window == 0 || rows == 0) return;
  double& known = state.statistics().averaged_rows;
  const double before = std::min(known, std::max(window, agreements_least * rows));
  const double weight = rows / (before + rows);
  const GradientView average = state.average();
  const GradientView to = state.parameters();
  if (average.scalar == Scalar::f32)
    move_f32(average.as<float>().data(), to.as<float>().data(), average.count, static_cast<float>(weight));
  else
    move(average.as<double>().data(), to.as<double>().data(), average.count, weight);
  known = before + rows;
}

}  // namespace rivulet::devices
