// The fixed head of the facts: what is accepted is what an encoder writes, but for bytes that mean nothing
// yet.
#include "sync/round/facts.h"
#include "core/check.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/facts_bytes.h"

namespace rivulet::fuzz {
namespace {

using namespace sync;

constexpr std::size_t unused = 232;
constexpr std::size_t unused_end = 248;

void run(Input input) {
  const auto facts = decode_head(input);
  if (!facts) {
    RIVULET_CHECK(facts.error().code == ErrorCode::protocol && !facts.error().message.empty(),
                  "refused in words");
    return;
  }
  RIVULET_CHECK(facts.value().section_bytes <= facts_section_max_bytes, "what is to come is bounded");
  const FactsHead again = encode_head(facts.value());
  const Input written(again);
  RIVULET_CHECK(std::ranges::equal(written.first(unused), input.first(unused)), "every field is read");
  RIVULET_CHECK(decode_head(again), "what was accepted is accepted again");
}

void seal(Bytes& input) {
  input.resize(facts_head_bytes);
  if (input[unused] == std::byte{0})
    std::fill(input.begin() + unused, input.begin() + unused_end, std::byte{0});
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
  for (const Facts& facts : {Facts{}, busy}) {
    const FactsHead head = encode_head(facts);
    all.emplace_back(head.begin(), head.end());
  }
  return all;
}

}  // namespace

extern const Target target_facts;
const Target target_facts{"facts", run, seeds, seal};

}  // namespace rivulet::fuzz
