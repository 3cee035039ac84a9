// The text of a SNAP with which a newcomer begins, since older records were deleted; then the group
// continues.
#include "sync/membership/snapshot.h"
#include "core/check.h"
#include "sync/membership/log_reader.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/log_bytes.h"

namespace rivulet::fuzz {
namespace {

using namespace sync::membership;

constexpr std::size_t records_max = 50;
constexpr std::int64_t offset_max = std::int64_t{1} << 62U;

/// Every known device sends its usual records.
std::vector<ControlRecord> what_devices_say(const Fold& fold) {
  std::vector<ControlRecord> records;
  const std::uint64_t next = fold.view.number + 1;
  for (const auto& [id, device] : fold.devices) {
    if (records.size() >= records_max) break;
    records.emplace_back(Leave{id, device.before.session, "another process has this id"});
    records.emplace_back(Ready{id, device.session, next, fold.committed.stamp, fold.committed.digest, ""});
    records.emplace_back(Close{id, device.session, next});
    records.emplace_back(Saved{id, device.session, next, {next, 1}, "d", "f"});
    records.emplace_back(Addr{id, device.session, fold.view.token, "k", {}});
  }
  Hello hello = fold.devices.empty() ? Hello{"x", "x1", "h", 1, 1, "h"} : fold.devices.begin()->second.hello;
  hello.nonce = "one-that-is-new";
  records.emplace_back(hello);
  return records;
}

void run(Input input) {
  const std::string text(text_of(input));
  auto begun = fold_of(Snap{"a", 0, 0, snapshot_hash(text), text});
  if (!begun || begun->next_offset < 0 || begun->next_offset > offset_max)
    return;  // it must be at its position in the log
  Fold& fold = *begun;
  RIVULET_CHECK(snapshot_of(fold) == text, "one text for one fold and form");
  std::int64_t offset = fold.next_offset;
  for (const ControlRecord& record : what_devices_say(fold)) {
    const Fold before = fold;
    apply(fold, offset, record, offset);
    check_goes_on(before, fold);
    offset += offset_step;
  }
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  Fold fold;
  std::int64_t offset = 0;
  for (const auto& record : records_of_a_life()) {
    apply(fold, offset, record, offset);
    offset += offset_step;
    if (std::holds_alternative<Addr>(record)) continue;
    all.push_back(bytes_of(snapshot_of(fold)));
  }
  return all;
}

}  // namespace

extern const Target target_snapshot;
const Target target_snapshot{"snapshot", run, seeds};

}  // namespace rivulet::fuzz
