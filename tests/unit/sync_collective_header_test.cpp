#include <doctest/doctest.h>

#include <string>

#include "sync/collective/aggregation.h"

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

}  // namespace
