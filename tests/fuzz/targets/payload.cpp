// The header in front of every payload.
#include "core/check.h"
#include "core/digest.h"
#include "sync/collective/aggregation.h"
#include "tests/fuzz/bytes.h"

namespace rivulet::fuzz {
namespace {

using namespace sync;

void run(Input input) {
  const auto header = decode_header(input);
  if (!header) {
    RIVULET_CHECK(header.error().code == ErrorCode::protocol, "refused as what the protocol forbids");
    return;
  }
  RIVULET_CHECK(decode_header(encode_header(header.value())).value() == header.value(), "a header survives");
}

void seal(Bytes& input) {
  input.resize(payload_header_bytes);
  const std::size_t end = payload_header_bytes - sizeof(std::uint64_t);
  put_number(std::span(input), end, digest_of(Input(input).first(end)).low);
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const PayloadHeader& header : {PayloadHeader{}, PayloadHeader{7, 1234, 2, 1 << 20}}) {
    const auto bytes = encode_header(header);
    all.emplace_back(bytes.begin(), bytes.end());
  }
  return all;
}

}  // namespace

extern const Target target_payload;
const Target target_payload{"payload", run, seeds, seal};

}  // namespace rivulet::fuzz
