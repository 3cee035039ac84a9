// The fixed head of the facts: an accepted one equals an encoder's output, except for unused bytes.
#include "sync/message/facts.h"
#include "core/check.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/facts_bytes.h"

namespace rivulet::fuzz {
namespace {

using namespace sync;

constexpr std::size_t count_at = facts_head_bytes - 12;  // of the measurements: a number, the checksum
constexpr std::size_t checksum_bytes = 8;

/// Start of the zeros.
std::size_t unused_from(std::size_t measurements) {
  return count_at + sizeof(std::uint32_t) + sizeof(float) * measurements;
}

void run(Input input) {
  const auto facts = decode_head(input);
  if (!facts) {
    RIVULET_CHECK(facts.error().code == ErrorCode::protocol && !facts.error().message.empty(),
                  "refused in words");
    return;
  }
  RIVULET_CHECK(facts.value().section_bytes <= facts_section_max_bytes, "the announced section is bounded");
  const std::vector<std::byte> again = encode_head(facts.value());
  const Input written(again);
  const std::size_t used = unused_from(facts.value().measurements.size());
  RIVULET_CHECK(std::ranges::equal(written.first(used), input.first(used)), "every field is read");
  RIVULET_CHECK(decode_head(again), "accepted facts are accepted again");
}

void seal(Bytes& input) {
  const std::size_t measurements =
      input.size() > facts_head_bytes ? (input.size() - facts_head_bytes) / 8 % 4 : 0;
  input.resize(facts_head_bytes + sizeof(float) * measurements);
  put_number(input, count_at, static_cast<std::uint32_t>(measurements));
  const auto unused = static_cast<std::ptrdiff_t>(unused_from(measurements));
  if (input[static_cast<std::size_t>(unused)] == std::byte{0})
    std::fill(input.begin() + unused, input.end() - checksum_bytes, std::byte{0});
  seal_facts(input);
}

std::vector<Bytes> seeds() {
  Facts busy{
      .view = 3, .round = 17, .step = 1000, .rank = 2, .flags = flag_digest, .rows = 64, .queue_rows = 500};
  busy.stream_rate = 123.5;
  busy.compute_seconds = 0.0125;
  busy.digest = {1, 2};
  busy.interval = {{0, 3}, {100, 0}, {164, 0}, 64, 0, 0, 0};
  busy.section_bytes = 104;
  std::vector<Bytes> all;
  Facts measured = busy;
  measured.measurements = {0.5, -1.0};
  for (const Facts& facts : {Facts{}, busy, measured}) {
    const std::vector<std::byte> head = encode_head(facts);
    all.emplace_back(head.begin(), head.end());
  }
  return all;
}

}  // namespace

extern const Target target_facts;
const Target target_facts{"facts", run, seeds, seal};

}  // namespace rivulet::fuzz
