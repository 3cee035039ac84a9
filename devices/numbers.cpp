#include "devices/numbers.h"

namespace rivulet::devices {

double norm2(const GradientView& v) {
  if (v.scalar == Scalar::f32) {
    const std::span<const float> x = v.as<float>();
    return dot<double>(x, x);
  }
  const std::span<const double> x = v.as<double>();
  return dot<double>(x, x);
}

}  // namespace rivulet::devices
