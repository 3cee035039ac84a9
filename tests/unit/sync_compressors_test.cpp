// What every compressor must do, whichever it is.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "core/rng.h"
#include "runtime/config/config.h"
#include "sync/round/residual.h"
#include "tests/support/dense_exchange.h"
#include "tests/support/parts/parts.h"

using namespace rivulet;
using namespace rivulet::sync;
using testing::view_over;

namespace {

std::vector<const CompressorEntry*> all_compressors() {
  const testing::PartsCatalog parts;
  const auto all = parts.catalog().sync.compressors;
  return {all.begin(), all.end()};
}

const Settings& settings() {
  static const Settings all = runtime::Config::default_settings();
  return all;
}

template <class T>
std::vector<T> drawn(std::size_t count, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<T> numbers(count);
  for (T& x : numbers) x = static_cast<T>(rng.normal());
  return numbers;
}

/// A compressor with a slot for `keep` of 1000 numbers.
template <class T>
struct Slot {
  const CompressorEntry& compressor;
  ContributionShape shape{sizeof(T) == 4 ? Scalar::f32 : Scalar::f64, {600, 399, 1}, 0};
  Coding coding{&shape, 0.05, 3, &settings()};
  std::vector<T> numbers = drawn<T>(1000, 5);
  std::vector<std::byte> bytes = std::vector<std::byte>(compressor.slot_bytes(shape, coding.keep_ratio));
  void encode() { compressor.encode(coding, view_over(numbers), bytes); }
  std::vector<T> decoded(double weight) const {
    std::vector<T> sum(1000);
    const auto read = compressor.decode_add(coding, bytes, weight, view_over(sum));
    REQUIRE_MESSAGE(bool(read), compressor.name);
    return sum;
  }
};

}  // namespace

TEST_CASE_TEMPLATE("Compressors: fill their slot alike each time, and read it with any weight", T, float,
                   double) {
  for (const auto* entry : all_compressors()) {
    INFO(entry->name);
    Slot<T> slot{*entry};
    const auto untouched = slot.numbers;
    slot.encode();
    CHECK(slot.numbers == untouched);
    const auto first = slot.bytes;
    std::ranges::fill(slot.bytes, std::byte{0xee});
    slot.encode();
    CHECK(slot.bytes == first);  // all of it, and nothing but a function of the numbers
    const auto once = slot.decoded(1);
    const auto less = slot.decoded(-0.25);
    double size = 0;
    for (std::size_t i = 0; i < once.size(); ++i) {
      CHECK(double{less[i]} == doctest::Approx(-0.25 * double{once[i]}).epsilon(1e-6));
      size += std::abs(double{once[i]});
    }
    CHECK(size > 0);
  }
}

TEST_CASE_TEMPLATE("Compressors: what is sent and what is kept is what there was", T, float, double) {
  for (const auto* entry : all_compressors()) {
    if (!entry->keeps_residual) continue;
    INFO(entry->name);
    Slot<T> slot{*entry};
    Residual residual(slot.shape);
    std::vector<double> contributed(1000), agreed(1000);
    for (std::uint64_t round = 0; round < 50; ++round) {
      auto mine = drawn<T>(1000, round);
      slot.coding.draw = round;
      const GradientView staged = residual.stage(view_over(mine), 0.3);
      entry->encode(slot.coding, staged, slot.bytes);
      residual.sent(*entry, slot.coding, slot.bytes);
      residual.commit();
      const auto sent = slot.decoded(1);
      for (std::size_t i = 0; i < mine.size(); ++i) {
        contributed[i] += 0.3 * double{mine[i]};
        agreed[i] += double{sent[i]};
      }
    }
    std::vector<T> kept(1000);
    std::memcpy(kept.data(), residual.numbers().data(), residual.numbers().size());
    for (std::size_t i = 0; i < kept.size(); ++i)
      CHECK(std::abs(agreed[i] + double{kept[i]} - contributed[i]) < (sizeof(T) == 4 ? 1e-5 : 1e-13) * 50);
  }
}

TEST_CASE("Compressors: bytes that a peer makes up are read or refused, and write nowhere else") {
  for (const auto* entry : all_compressors()) {
    INFO(entry->name);
    Slot<float> slot{*entry};
    Rng rng(9);
    for (int i = 0; i < 2000; ++i) {
      const std::size_t size = i % 3 == 0 ? slot.bytes.size() : rng.below(2 * slot.bytes.size());
      std::vector<std::byte> bytes(size);
      for (auto& b : bytes) b = static_cast<std::byte>(rng.below(256));
      std::vector<float> sum(1000);
      const auto read = entry->decode_add(slot.coding, bytes, 1.0, view_over(sum));
      if (!read) CHECK(read.error().code == ErrorCode::protocol);
    }
  }
}

TEST_CASE("Compressors: have names and numbers of their own") {
  std::map<std::uint16_t, std::string_view> seen;
  for (const auto* entry : all_compressors()) {
    CHECK(seen.emplace(entry->wire_id, entry->name).second);
    CHECK_FALSE(entry->help.empty());
  }
}

TEST_CASE_TEMPLATE("Compressor dense: adds weight times the numbers, in either type", T, float, double) {
  const auto& dense = testing::compressor_named("dense");
  std::vector<T> in{1, -2, 4, 0}, sum{10, 10, 10, 10};
  const ContributionShape shape{sizeof(T) == 4 ? Scalar::f32 : Scalar::f64, {4}, 0};
  std::vector<std::byte> bytes(dense.slot_bytes(shape, 1.0));
  CHECK(bytes.size() == 4 * sizeof(T));
  dense.encode({&shape}, view_over(in), bytes);
  CHECK(dense.decode_add({&shape}, bytes, 0.25, view_over(sum)));
  CHECK(sum == std::vector<T>{10.25, 9.5, 11, 10});
}

TEST_CASE("Compressor dense: a slot of another length is refused and adds nothing") {
  const auto& dense = testing::compressor_named("dense");
  std::vector<float> sum{1, 2};
  for (const std::size_t size : {0U, 7U, 9U, 16U}) {
    const auto added = dense.decode_add({}, std::vector<std::byte>(size), 1.0, view_over(sum));
    REQUIRE_FALSE(added);
    CHECK(added.error().code == ErrorCode::protocol);
  }
  CHECK(sum == std::vector<float>{1, 2});
}

TEST_CASE("Compressor random-k: one number of each run, alike on all devices, others in another round") {
  const auto& random_k = testing::compressor_named("random-k");
  Slot<float> slot{random_k};
  std::vector<int> sent(1000);
  for (slot.coding.draw = 0; slot.coding.draw < 400; ++slot.coding.draw) {
    slot.encode();
    CHECK(slot.bytes.size() == 50 * sizeof(float));
    const auto once = slot.decoded(1);
    for (std::size_t run = 0; run < 50; ++run) {
      int of_run = 0;
      for (std::size_t i = 20 * run; i < 20 * (run + 1); ++i) {
        if (once[i] == 0) continue;
        CHECK(once[i] == slot.numbers[i]);
        ++of_run;
        ++sent[i];
      }
      CHECK(of_run == 1);
    }
  }
  // 400 / 20 times each, give or take what chance gives: none is left out for ever.
  for (const int times : sent) CHECK(times > 3);
}
