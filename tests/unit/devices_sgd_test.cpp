#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "devices/trainer.h"
#include "tests/support/sgd.h"

using namespace rivulet;
using namespace rivulet::devices;

namespace {

template <class T>
constexpr Scalar scalar_of = sizeof(T) == 4 ? Scalar::f32 : Scalar::f64;

/// Two parameters and one buffer.
template <class T>
struct Fixture {
  std::unique_ptr<Device> device = make_host_device();
  ModelLayout layout{scalar_of<T>, 2, 1, {}, {}};
  ModelState state = std::move(ModelState::create(layout, *device)).value();

  ApplyReport apply(std::array<T, 3> contribution, const SgdConfig& sgd, double factor = 1) {
    return sgd_step(state, {reinterpret_cast<std::byte*>(contribution.data()), 3, layout.scalar}, sgd,
                    factor);
  }
  std::span<T> w() { return state.parameters().as<T>(); }
};

}  // namespace

TEST_CASE_TEMPLATE("SGD: momentum and weight decay, step by step by hand", T, float, double) {
  Fixture<T> f;
  f.w()[0] = 1;
  f.w()[1] = -2;
  const SgdConfig sgd{0.5, 0.5, 0.25, 0};
  // g = (0.25, 1) + 0.25 w = (0.5, 0.5);  v = g;  w -= 0.5 v
  f.apply({T(0.25), T(1), T(7)}, sgd);
  CHECK(f.w()[0] == T(0.75));
  CHECK(f.w()[1] == T(-2.25));
  // g = (-1, 0.0625) + 0.25 w = (-0.8125, -0.5);  v = 0.5 v + g = (-0.5625, -0.25);  w -= 0.5 v
  f.apply({T(-1), T(0.0625), T(9)}, sgd);
  CHECK(f.w()[0] == T(1.03125));
  CHECK(f.w()[1] == T(-2.125));
  CHECK(f.state.optimizer_array(0).template as<T>()[0] == T(-0.5625));
  CHECK(f.state.buffers().template as<T>()[0] == T(9));
}

TEST_CASE("SGD: the gradient's norm is reported as agreed and clipped as a whole") {
  Fixture<double> f;
  const ApplyReport report = f.apply({3, 4, 0}, {1.0, 0.0, 0.0, 1.0});
  CHECK(report.gradient_norm == 5.0);
  CHECK(f.w()[0] == doctest::Approx(-0.6).epsilon(1e-6));
  CHECK(f.w()[1] == doctest::Approx(-0.8).epsilon(1e-6));
  Fixture<double> small;
  small.apply({0.3, 0.4, 0}, {1.0, 0.0, 0.0, 1.0});  // below the limit: unchanged
  CHECK(small.w()[0] == -0.3);
}

TEST_CASE("SGD: the learning rate factor of the plan scales the step and is reported") {
  Fixture<double> f;
  const ApplyReport report = f.apply({1, 2, 0}, {0.5, 0.9, 0.0, 0.0}, 0.5);
  CHECK(report.learning_rate == 0.25);
  CHECK(f.w()[1] == -0.5);
}

TEST_CASE("SGD: the bits are those of the loop as it is written, however it was compiled") {
  constexpr std::size_t count = 1003;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const auto device = make_host_device();
  ModelState state = std::move(ModelState::create({Scalar::f32, count, 0, {}, {}}, *device)).value();
  std::array<float, count> w{};
  std::array<float, count> v{};
  for (int step = 0; step < 3; ++step) {
    std::array<float, count> gradient{};
    std::array<double, 8> lanes{};
    for (auto& g : gradient) g = normal(random);
    for (std::size_t i = 0; i < count; ++i) {
      const float g = gradient[i] + 0.01F * w[i];
      v[i] = 0.9F * v[i] + g;
      w[i] -= 0.05F * v[i];
      if (i < count / 8 * 8) lanes[i % 8] += static_cast<double>(gradient[i]) * gradient[i];
    }
    double sum = 0;
    for (std::size_t i = count / 8 * 8; i < count; ++i) sum += static_cast<double>(gradient[i]) * gradient[i];
    for (const double lane : lanes) sum += lane;
    const auto report = sgd_step(state, {reinterpret_cast<std::byte*>(gradient.data()), count, Scalar::f32},
                                 {0.05, 0.9, 0.01, 0}, 1.0);
    CHECK(report.gradient_norm == std::sqrt(sum));
  }
  CHECK(std::ranges::equal(state.parameters().as<float>(), w));
  CHECK(std::ranges::equal(state.optimizer_array(0).as<float>(), v));
}

TEST_CASE("State: a copy is deep, equal in all arrays, and its own") {
  Fixture<float> a;
  Fixture<float> b;
  a.apply({1, 2, 3}, {});
  b.state.copy_from(a.state);
  Hasher of_a;
  Hasher of_b;
  REQUIRE(a.state.hash_into(of_a, *a.device));
  REQUIRE(b.state.hash_into(of_b, *b.device));
  CHECK(of_a.finish() == of_b.finish());
  b.apply({1, 2, 3}, {});
  CHECK(a.w()[0] != b.w()[0]);
}

TEST_CASE("State: the digest sees parameters, momentum and buffers") {
  Fixture<float> f;
  std::vector<Digest> digests;
  const auto add = [&] {
    Hasher hasher;
    REQUIRE(f.state.hash_into(hasher, *f.device));
    for (const Digest& other : digests) CHECK(!(hasher.finish() == other));
    digests.push_back(hasher.finish());
  };
  add();
  f.state.parameters().as<float>()[1] = 1;
  add();
  f.state.optimizer_array(0).as<float>()[1] = 1;
  add();
  f.state.buffers().as<float>()[0] = 1;
  add();
}
