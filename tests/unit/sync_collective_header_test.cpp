#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "core/rng.h"
#include "sync/collective/aggregation.h"
#include "sync/compressor/compressor.h"

namespace {

using namespace rivulet;
using sync::PayloadHeader;

const PayloadHeader sample{
    .view = 0x0102030405060708, .round = 0x1112131415161718, .compressor = 0x2122, .length = 0x3132};

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) {
    text += "0123456789abcdef"[static_cast<unsigned>(b) >> 4];
    text += "0123456789abcdef"[static_cast<unsigned>(b) & 15];
  }
  return text;
}

TEST_CASE("Payload header: has these 64 bytes, on every machine") {
  const auto bytes = sync::encode_header(sample);
  CHECK(hex(bytes) ==
        "5256504c01002221"  // RVPL, version, compressor
        "0807060504030201"
        "1817161514131211"
        "3231000000000000"                                  // view, round, length
        "000000000000000000000000000000000000000000000000"  // reserved
        "e56e6cd63537cbcf");                                // XXH3 of the rest
}

TEST_CASE("Payload header: comes back as it was") {
  const auto decoded = sync::decode_header(sync::encode_header(sample));
  REQUIRE(decoded);
  CHECK(decoded.value() == sample);
}

TEST_CASE("Payload header: any changed byte is refused") {
  for (std::size_t i = 0; i < sync::payload_header_bytes; ++i) {
    auto bytes = sync::encode_header(sample);
    bytes[i] ^= std::byte{1};
    const auto decoded = sync::decode_header(bytes);
    REQUIRE_FALSE(decoded);
    CHECK(decoded.error().code == ErrorCode::protocol);
  }
  CHECK_FALSE(sync::decode_header({}));
}

std::unique_ptr<sync::Compressor> dense() {
  for (const auto* entry : sync::builtin_compressors()) {
    if (entry->name == "dense") return entry->make();
  }
  return nullptr;
}

template <class T>
GradientView over(std::vector<T>& numbers) {
  return {.data = reinterpret_cast<std::byte*>(numbers.data()),
          .count = numbers.size(),
          .scalar = sizeof(T) == 4 ? Scalar::f32 : Scalar::f64};
}

TEST_CASE_TEMPLATE("Compressor dense: adds weight times the numbers, in either type", T, float, double) {
  auto compressor = dense();
  REQUIRE(compressor);
  std::vector<T> in{1, -2, 4, 0}, sum{10, 10, 10, 10};
  std::vector<std::byte> bytes(compressor->bytes_max(in.size(), over(in).scalar) + 1);
  const auto used = compressor->encode(over(in), 0.25, 1.0, bytes);
  REQUIRE(used);
  CHECK(used.value() == 4 * sizeof(T));
  CHECK(compressor->decode_add(std::span(bytes).first(used.value()), over(sum)));
  CHECK(sum == std::vector<T>{10.25, 9.5, 11, 10});
  CHECK(in == std::vector<T>{1, -2, 4, 0});
}

TEST_CASE_TEMPLATE("Compressor dense: weighted by who receives it, it has the same bits", T, float, double) {
  auto compressor = dense();
  REQUIRE(compressor->receiver_weighted());
  std::vector<T> in(1001), before(1001), after(1001);
  Rng rng(3);
  for (std::size_t i = 0; i < in.size(); ++i) {
    in[i] = static_cast<T>(rng.normal());
    before[i] = after[i] = static_cast<T>(rng.normal());
  }
  std::vector<std::byte> bytes(compressor->bytes_max(in.size(), over(in).scalar));
  constexpr double weight = 1.0 / 3;
  REQUIRE(compressor->encode(over(in), weight, 1.0, bytes));
  REQUIRE(compressor->decode_add(bytes, over(before)));
  REQUIRE(compressor->encode(over(in), 1.0, 1.0, bytes));
  REQUIRE(compressor->decode_add_weighted(bytes, weight, over(after)));
  CHECK(std::memcmp(before.data(), after.data(), before.size() * sizeof(T)) == 0);
}

TEST_CASE("Compressor dense: a payload of another length is refused and adds nothing") {
  auto compressor = dense();
  std::vector<float> sum{1, 2};
  for (const std::size_t size : {0U, 7U, 9U, 16U}) {
    const auto added = compressor->decode_add(std::vector<std::byte>(size), over(sum));
    REQUIRE_FALSE(added);
    CHECK(added.error().code == ErrorCode::protocol);
    CHECK_FALSE(compressor->decode_add_weighted(std::vector<std::byte>(size), 0.5, over(sum)));
  }
  CHECK(sum == std::vector<float>{1, 2});
}

TEST_CASE("Compressor dense: reads host memory only") {
  auto compressor = dense();
  CHECK(compressor->accepts(MemoryKind::host));
  CHECK(compressor->accepts(MemoryKind::pinned));
  CHECK_FALSE(compressor->accepts(MemoryKind::device));
}

}  // namespace
