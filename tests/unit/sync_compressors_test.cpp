// Requirements for every compressor.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "core/rng.h"
#include "runtime/config/config.h"
#include "sync/coding/values.h"
#include "sync/residual/residual.h"
#include "tests/support/dense_exchange.h"
#include "tests/support/parts/parts.h"

using namespace rivulet;
using namespace rivulet::sync;
using testing::compressor_named;
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

/// A compressor with a slot for `keep` of 1000 elements.
template <class T>
struct Slot {
  const CompressorEntry& compressor;
  ContributionShape shape{sizeof(T) == 4 ? Scalar::f32 : Scalar::f64, {600, 399, 1}, 0, {20, 19, 1}};
  Coding coding{&shape, 0.05, 3, &settings()};
  std::vector<T> numbers = drawn<T>(1000, 5);
  std::vector<std::byte> bytes =
      std::vector<std::byte>(compressor.slot_bytes(shape, coding.keep_ratio, settings()));
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
    CHECK(slot.bytes == first);  // complete, and a function of the values alone
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

TEST_CASE("Compressors: a slot with bytes that differ is read or refused, and writes nowhere else") {
  for (const auto* entry : all_compressors()) {
    INFO(entry->name);
    Slot<float> slot{*entry};
    Rng rng(10);
    std::vector<float> mine(1000);
    for (float& x : mine) x = static_cast<float>(rng.normal());
    entry->encode(slot.coding, view_over(mine), slot.bytes);
    int refused = 0;
    for (int i = 0; i < 600; ++i) {
      auto bytes = slot.bytes;
      for (std::uint64_t k = rng.below(4); k < 4; ++k)
        bytes[rng.below(bytes.size())] ^= static_cast<std::byte>(1 + rng.below(255));
      std::vector<float> sum(1000);
      const auto read = entry->decode_add(slot.coding, bytes, 1.0, view_over(sum));
      refused += read ? 0 : 1;
      if (!read) CHECK(read.error().code == ErrorCode::protocol);
    }
    // Most bytes of a sparse slot are positions, which must be valid.
    if (entry->name == "topk") CHECK(refused > 20);
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
  std::vector<std::byte> bytes(dense.slot_bytes(shape, 1.0, settings()));
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
  // About 400 / 20 times each: none is left out forever.
  for (const int times : sent) CHECK(times > 3);
}

TEST_CASE("topk: sends the largest numbers, as many as its slot holds, and that is what was asked for") {
  for (const char* values : {"f32", "f16", "bf16", "i8", "sign"})
    for (const double keep : {0.001, 0.01, 0.1}) {
      CAPTURE(values);
      CAPTURE(keep);
      Settings settings_of_topk = settings();
      settings_of_topk.set("compression.topk.values", std::string(values));
      const auto& topk = compressor_named("topk");
      const ContributionShape shape{Scalar::f32, {150'000, 40'000, 10'000}, 0};
      const Coding coding{&shape, keep, 0, &settings_of_topk};
      auto numbers = drawn<float>(200'000, 9);
      std::vector<std::byte> slot(topk.slot_bytes(shape, keep, settings_of_topk));
      topk.encode(coding, view_over(numbers), slot);
      std::vector<float> sent(numbers.size());
      REQUIRE(topk.decode_add(coding, slot, 1.0, view_over(sent)));
      std::size_t entries = 0;
      float least = 1e9F;
      float most_left = 0;
      for (std::size_t i = 0; i < sent.size(); ++i) {
        entries += sent[i] != 0 ? 1 : 0;
        float& side = sent[i] != 0 ? least : most_left;
        side = sent[i] != 0 ? std::min(side, std::abs(numbers[i])) : std::max(side, std::abs(numbers[i]));
      }
      CHECK(least >= most_left);
      const double wanted = keep * 200'000;
      CHECK(static_cast<double>(entries) > 0.97 * wanted);
      CHECK(static_cast<double>(entries) < 1.03 * wanted);
      const double p = static_cast<double>(entries) / 200'000;
      const double entropy = -200'000 * (p * std::log2(p) + (1 - p) * std::log2(1 - p));
      const double bits = entropy + static_cast<double>(entries * bits_of(*value_code_of(values)));
      CHECK(8.0 * static_cast<double>(slot.size()) < 1.06 * bits + 8 * 32);
    }
}

TEST_CASE("topk: of its slot a byte a value and a number a tensor are values; others count all of theirs") {
  Slot<float> slot{compressor_named("topk")};
  slot.encode();
  std::size_t sent = 0;
  for (const float x : slot.decoded(1)) sent += x != 0 ? 1 : 0;
  REQUIRE(sent > 30);
  CHECK(compressor_named("topk").value_bytes(slot.coding, slot.bytes) == 3 * sizeof(float) + sent);
  for (const char* name : {"topk", "dense"}) {
    Slot<float> one{compressor_named(name)};
    one.encode();
    Residual residual(one.shape);
    residual.stage(view_over(one.numbers), 1);
    residual.sent(one.compressor, one.coding, one.bytes);
    residual.sent(one.compressor, one.coding, one.bytes);
    const std::uint64_t values = std::string_view(name) == "topk" ? 3 * sizeof(float) + sent : 4'000;
    CHECK(residual.slot_bytes().values == 2 * values);
    CHECK(residual.slot_bytes().positions == 2 * (one.bytes.size() - values));
  }
}

TEST_CASE("topk: per tensor, every tensor is sent in time, also the smallest in a slot that is too small") {
  Settings per_tensor = settings();
  per_tensor.set("compression.topk.per_tensor", true);
  const auto& topk = compressor_named("topk");
  const ContributionShape shape{Scalar::f32, {2400, 84, 840, 10}, 0};
  const Coding coding{&shape, 0.001, 0, &per_tensor};
  Residual residual(shape);
  std::vector<std::byte> slot(topk.slot_bytes(shape, 0.001, per_tensor));
  std::vector<float> sent(shape.count());
  for (std::uint64_t round = 0; round < 300; ++round) {
    auto mine = drawn<float>(shape.count(), round);
    topk.encode(coding, residual.stage(view_over(mine), 1), slot);
    residual.sent(topk, coding, slot);
    residual.commit();
    REQUIRE(topk.decode_add(coding, slot, 1.0, view_over(sent)));
  }
  CHECK(std::count_if(sent.end() - 10, sent.end(), [](float x) { return x != 0; }) > 0);
  CHECK(std::count_if(sent.begin() + 2400, sent.begin() + 2484, [](float x) { return x != 0; }) > 0);
}

TEST_CASE("topk: per tensor, each sends its share, also where another tensor's numbers are larger") {
  Settings per_tensor = settings();
  per_tensor.set("compression.topk.per_tensor", true);
  const auto& topk = compressor_named("topk");
  const ContributionShape shape{Scalar::f32, {1000, 1000, 3}, 0};
  auto numbers = drawn<float>(2003, 2);
  for (std::size_t i = 1000; i < 2000; ++i) numbers[i] *= 1000;
  const auto sent_of = [&](const Settings& with, std::size_t from, std::size_t to) {
    const Coding coding{&shape, 0.05, 0, &with};
    std::vector<std::byte> slot(topk.slot_bytes(shape, 0.05, with));
    topk.encode(coding, view_over(numbers), slot);
    std::vector<float> sent(numbers.size());
    REQUIRE(topk.decode_add(coding, slot, 1.0, view_over(sent)));
    return std::count_if(sent.begin() + static_cast<std::ptrdiff_t>(from),
                         sent.begin() + static_cast<std::ptrdiff_t>(to), [](float x) { return x != 0; });
  };
  CHECK(sent_of(settings(), 0, 1000) == 0);
  CHECK(sent_of(per_tensor, 0, 1000) > 45);
  CHECK(sent_of(per_tensor, 1000, 2000) > 40);
  CHECK(sent_of(per_tensor, 2000, 2003) == 1);
}
