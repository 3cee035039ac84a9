#include "devices/numbers.h"

#include "core/vector_code.h"

namespace rivulet::devices {
namespace {

RIVULET_VECTOR_CODE double norm2_of(const float* x, std::size_t n) {
  return dot<double>(x, x, n);
}

}  // namespace

double norm2(const GradientView& v) {
  if (v.scalar == Scalar::f32) return norm2_of(v.as<float>().data(), v.count);
  const double* x = v.as<double>().data();
  return dot<double>(x, x, v.count);
}

}  // namespace rivulet::devices
