#include <bit>
#include <cstring>

#include "core/digest.h"
#include "sync/collective/aggregation.h"

// Layout, little-endian (offset, size):
//   magic 0,4 | version 4,2 | compressor 6,2 | view 8,8 | round 16,8 | length 24,8 | zeros 32,24 | checksum
//   56,8
// The checksum is the low half of the digest of the first 56 bytes.
namespace rivulet::sync {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr std::uint32_t magic = 0x4c505652;  // "RVPL"
constexpr std::uint16_t version = 1;
constexpr std::size_t checked_bytes = 56;

template <class T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}
template <class T>
T take(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

Error broken(const std::string& what) {
  return {ErrorCode::protocol, "payload header: " + what};
}

}  // namespace

std::array<std::byte, payload_header_bytes> encode_header(const PayloadHeader& header) {
  std::array<std::byte, payload_header_bytes> out{};
  put(out.data(), magic);
  put(out.data() + 4, version);
  put(out.data() + 6, header.compressor);
  put(out.data() + 8, header.view);
  put(out.data() + 16, header.round);
  put(out.data() + 24, header.length);
  put(out.data() + checked_bytes, digest_of(std::span(out).first(checked_bytes)).low);
  return out;
}

Result<PayloadHeader> decode_header(std::span<const std::byte> bytes) {
  if (bytes.size() != payload_header_bytes)
    return broken("has " + std::to_string(bytes.size()) + " bytes, expected 64");
  if (take<std::uint32_t>(bytes.data()) != magic) return broken("the first four bytes are not RVPL");
  if (take<std::uint64_t>(bytes.data() + checked_bytes) != digest_of(bytes.first(checked_bytes)).low) {
    return broken("the checksum is wrong");
  }
  if (const auto v = take<std::uint16_t>(bytes.data() + 4); v != version) {
    return broken("version " + std::to_string(v) + ", this program supports 1");
  }
  PayloadHeader header;
  header.compressor = take<std::uint16_t>(bytes.data() + 6);
  header.view = take<std::uint64_t>(bytes.data() + 8);
  header.round = take<std::uint64_t>(bytes.data() + 16);
  header.length = take<std::uint64_t>(bytes.data() + 24);
  return header;
}

}  // namespace rivulet::sync
