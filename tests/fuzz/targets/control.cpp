// One record of the control topic: an accepted one is equal when written and read again.
#include "core/check.h"
#include "sync/membership/records.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/log_bytes.h"

namespace rivulet::fuzz {
namespace {

using namespace sync::membership;

void run(Input input) {
  Ignored reason{};
  const auto record = decode(input, fuzzed_job, &reason);
  if (!record) {
    RIVULET_CHECK(!record.error().message.empty() && name_of(reason) != "other", "refused in words");
    return;
  }
  const auto again = encode(record.value(), fuzzed_job);
  // Escapes of characters and numbers may get longer; a record near the limit is then rejected.
  if (!again) {
    RIVULET_CHECK(input.size() > record_max_bytes / 8, "only a long record can become too long");
    return;
  }
  RIVULET_CHECK(decode(again.value(), fuzzed_job).value() == record.value(), "a record survives");
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const auto& record : records_of_a_life()) all.push_back(encode(record, fuzzed_job).value());
  return all;
}

}  // namespace

extern const Target target_control;
const Target target_control{"control", run, seeds};

}  // namespace rivulet::fuzz
