#include "core/rng.h"

#include <bit>
#include <cmath>
#include <numbers>

namespace rivulet {
namespace {

std::uint64_t splitmix(std::uint64_t& x) noexcept {
  x += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = x;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace

std::uint64_t derive_seed(std::uint64_t seed, std::string_view purpose, std::uint64_t index) noexcept {
  std::uint64_t h = 0xcbf29ce484222325ULL;  // FNV-1a of the name keeps streams apart
  for (unsigned char c : purpose) h = (h ^ c) * 0x100000001b3ULL;
  std::uint64_t x = seed ^ h;
  splitmix(x);
  x ^= index * 0xd1342543de82ef95ULL;
  return splitmix(x);
}

Rng::Rng(std::uint64_t seed) noexcept {
  for (auto& s : s_) s = splitmix(seed);
}

Rng Rng::derive(std::uint64_t seed, std::string_view purpose, std::uint64_t index) noexcept {
  return Rng(derive_seed(seed, purpose, index));
}

std::uint64_t Rng::next() noexcept {
  const std::uint64_t result = std::rotl(s_[1] * 5, 7) * 9;
  const std::uint64_t t = s_[1] << 17;
  s_[2] ^= s_[0];
  s_[3] ^= s_[1];
  s_[1] ^= s_[2];
  s_[0] ^= s_[3];
  s_[2] ^= t;
  s_[3] = std::rotl(s_[3], 45);
  return result;
}

std::uint64_t Rng::below(std::uint64_t bound) noexcept {
  // Rejection sampling keeps it exactly uniform; the loop nearly always runs once.
  const std::uint64_t limit = bound * (UINT64_MAX / bound);
  std::uint64_t x = next();
  while (x >= limit) x = next();
  return x % bound;
}

double Rng::uniform() noexcept {
  return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

double Rng::normal() noexcept {
  const double u = 1.0 - uniform();
  const double v = uniform();
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace rivulet
