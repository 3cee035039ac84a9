#include "tests/fuzz/log_bytes.h"

#include <algorithm>

#include "core/check.h"
#include "sync/membership/next_view.h"
#include "sync/membership/snapshot.h"
#include "sync/membership/waiting.h"

namespace rivulet::fuzz {

using namespace sync::membership;

namespace {

Hello hello_of(const std::string& device, const std::string& nonce) {
  Hello hello{device, nonce, "host-" + device, 100, 2, "h"};
  hello.config = {{"checkpoint.quorum", "2"}, {"job.devices", "2"}};
  hello.partitions = {"t:" + device};
  hello.has_state = Stamp{};
  return hello;
}

/// Maintains a fold in parallel, for the offsets and the snapshot in records.
class Life {
 public:
  std::int64_t put(const ControlRecord& record) {
    const std::int64_t offset = offset_step * static_cast<std::int64_t>(records.size());
    const std::uint64_t ignored = fold.ignored.total();
    apply(fold, offset, record, offset);
    RIVULET_CHECK(fold.ignored.total() == ignored, "every record of a life counts");
    records.push_back(record);
    return offset;
  }
  void close(std::int64_t a, std::int64_t b, std::uint64_t view, const Stamp& stamp,
             const std::string& digest) {
    put(Ready{"a", a, view, stamp, digest, "", 10 * stamp.step, true});
    put(Ready{"b", b, view, stamp, digest, "peer b was lost"});
    put(Close{"b", b, view});
  }
  Fold fold;
  std::vector<ControlRecord> records;
};

}  // namespace

std::vector<ControlRecord> records_of_a_life() {
  Life life;
  const std::int64_t a = life.put(hello_of("a", "a1"));
  std::int64_t b = life.put(hello_of("b", "b1"));
  life.close(a, b, 1, {}, "");
  life.put(Addr{"a", a, life.fold.view.token, "rank0", {std::byte{1}, std::byte{2}}});
  life.put(Close{"a", a, 1});
  life.put(Saved{"a", a, 1, {1, 5}, "d5", "f"});
  life.put(Saved{"b", b, 1, {1, 5}, "d5", "f"});
  const std::int64_t old = b;
  b = life.put(hello_of("b", "b2"));
  life.put(Leave{"b", old, "another process has this id"});
  life.close(a, b, 2, {1, 5}, "d5");
  life.put(Saved{"a", a, 2, {2, 9}, "d9", "g"});
  const std::string text = snapshot_of(life.fold);
  life.put(Snap{"a", a, life.fold.next_offset, snapshot_hash(text), text});
  life.put(Ready{"b", b, 3, {1, 5}, "d5", "", 50, false, true});
  Hello elastic = hello_of("e", "e1");
  elastic.devices = {1, 2, 4};
  const std::int64_t e = life.put(elastic);
  Ready judge{"e", e, 3, {1, 5}, "d5", "peer a was lost"};
  judge.lost = {"a"};
  judge.unreached = {"a"};
  judge.accuses = {"b", "c"};
  judge.copied = {"b"};
  life.put(judge);
  Ready copying{"e", e, 3, {1, 5}, "d5", ""};
  copying.copy = {.bytes = 5'000'000, .donor = "a", .failed = 1};
  const auto copy = static_cast<std::uint64_t>(life.put(copying));
  life.put(Addr{"e", e, copy, "rank1", {std::byte{3}}});
  life.put(Addr{"a", a, copy, "rank0", {std::byte{4}}});
  life.put(Leave{"a", a, "asked", WhyNot::none, Ends::device});
  life.put(Leave{"b", b, "ended", WhyNot::none, Ends::group});
  life.put(Stop{"s1", "host-c", 7});
  Hello again = hello_of("a", "a2");
  again.new_run = true;
  life.put(again);
  return life.records;
}

void check_fold(const Fold& fold) {
  RIVULET_CHECK(fold.devices.size() <= devices_max, "devices are bounded");
  RIVULET_CHECK(fold.saved.size() <= saved_max, "saved states are bounded");
  const auto copies =
      std::ranges::count_if(fold.devices, [](const auto& entry) { return entry.second.copy_at >= 0; });
  RIVULET_CHECK(fold.addresses.size() <= addresses_max_per_member * (fold.view.members.size() +
                                                                     2 * static_cast<std::size_t>(copies)),
                "addresses are bounded");
  RIVULET_CHECK(fold.view.members.size() == fold.view.sessions.size(), "every member has a session");
  for (const auto& [id, device] : fold.devices) {
    RIVULET_CHECK(id == device.hello.device && device.session < fold.next_offset, "a device is what it said");
    RIVULET_CHECK(device.swaps.size() <= swaps_max && device.past_nonces.size() <= past_nonces_max,
                  "a device's past sessions are bounded");
    RIVULET_CHECK(device.breaks.size() <= breaks_max && device.hello.devices.is_valid(),
                  "its losses are bounded, and so is its group");
  }
  for (const auto& [state, disks] : fold.saved)
    RIVULET_CHECK(state.stamp > fold.committed.stamp && !disks.empty(), "only what is newer waits");
  RIVULET_CHECK(fold.ignored.total() >= fold.ignored.of(Ignored::unreadable), "reasons add up");
  static_cast<void>(outside(fold, "a"));
  static_cast<void>(why_not_closable(fold, 2));
  static_cast<void>(missing_devices(fold, next_view(fold, false, 2), 2));
  for (const GroupSizes& sizes : {GroupSizes(2), GroupSizes(1, 2, 4)}) {
    static_cast<void>(still_missing(fold, next_view(fold, true, sizes), sizes));
    static_cast<void>(joiner_waits(fold, sizes));
  }
  static_cast<void>(last_heard_of_view(fold));
  static_cast<void>(last_knock(fold));
}

void check_goes_on(const Fold& before, const Fold& after) {
  RIVULET_CHECK(after.next_offset >= before.next_offset, "the log is read forwards");
  RIVULET_CHECK(after.view.number >= before.view.number && after.view.number <= before.view.number + 1,
                "view numbers increase by one");
  RIVULET_CHECK(after.run.number >= before.run.number, "runs are counted upwards");
  const bool same_run = after.run.number == before.run.number;
  RIVULET_CHECK(!same_run || after.committed.stamp >= before.committed.stamp,
                "a committed state stays committed");
}

void check_snapshot(const Fold& fold) {
  const std::string text = snapshot_of(fold);
  const auto back = fold_of(Snap{"a", 0, fold.next_offset, snapshot_hash(text), text});
  RIVULET_CHECK(back, "a device can begin with the snapshot of a fold");
  Fold expected = fold;
  expected.ignored = {};
  expected.addresses.clear();
  RIVULET_CHECK(*back == expected, "a snapshot contains everything that a fold uses");
}

}  // namespace rivulet::fuzz
