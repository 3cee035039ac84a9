#include "tests/support/sim_referee.h"

#include <fmt/format.h>

#include "sync/membership/snapshot.h"

namespace rivulet::testing {

using namespace sync::membership;

std::string id_of_device(std::size_t device) {
  return fmt::format("device-{:02}", device + 1);
}

std::size_t index_of_device(const std::string& id) {
  return std::stoul(id.substr(id.rfind('-') + 1)) - 1;
}

SimReferee::SimReferee(std::size_t devices, const Rules& rules, IsDurable is_durable)
    : reader_("sim", rules),
      is_durable_(std::move(is_durable)),
      held_(devices, StateHistory::none),
      said_(devices) {}

void SimReferee::found(const Finding& finding) {
  if (finding_.empty()) finding_ = finding;
}

void SimReferee::see(const std::string& text) {
  seen_.add(std::as_bytes(std::span(text)));
}

void SimReferee::record(const LogEntry& entry) {
  const std::uint64_t view = fold().view.number;
  const Committed committed = fold().committed;
  const auto record = reader_.take(entry);
  found(check_private(entry.bytes));
  // A HELLO names host and process, and a SNAP has all HELLOs: no two runs of a program agree in them.
  if (record && std::holds_alternative<Hello>(*record))
    see("hello " + std::get<Hello>(*record).device);
  else if (!record || !std::holds_alternative<Snap>(*record))
    seen_.add(entry.bytes);
  if (fold().committed != committed) check_commit();
  if (fold().view.number != view) check_view();
}

/// What every device starts from is how far the group had come, or more.
void SimReferee::check_view() {
  const ClosedView& view = fold().view;
  const int target = history_.find(view.target);
  if (target == StateHistory::none) return found("C4: a view starts from a state that nobody ever held");
  if (history_.at(target).digest != view.digest) return found("C3: a view's target has another digest");
  if (fold().rules.restamp) history_.add_name({view.number, view.target.step}, target);
  if (!history_.extends(target, committed_))
    found(fmt::format("C4: view {} starts from {}, which is not what came after the committed {}",
                      view.number, text_of(view.target), text_of(fold().committed.stamp)));
}

void SimReferee::check_commit() {
  const Stamp& stamp = fold().committed.stamp;
  const int state = history_.find(stamp);
  ++commits_;
  if (state == StateHistory::none) return found("C4: a state that nobody ever held was committed");
  if (!history_.extends(state, committed_))
    found(fmt::format("C4: the committed {} is not what came after the one before it", text_of(stamp)));
  committed_ = state;
}

/// SAVED is said after the disk has it (I6).
void SimReferee::said(std::span<const std::byte> bytes) {
  const auto record = decode(bytes, "sim");
  const auto* saved = record ? std::get_if<Saved>(&record.value()) : nullptr;
  if (saved == nullptr) return;
  const std::size_t device = index_of_device(saved->device);
  if (saved->stamp <= said_[device]) return;
  said_[device] = saved->stamp;
  if (!is_durable_(device, saved->stamp))
    found(fmt::format("C4: {} said SAVED of {}, which is not safe on its disk", saved->device,
                      text_of(saved->stamp)));
}

void SimReferee::booted(std::size_t device, const runtime::AgreedState& state, const std::string& digest) {
  if (state.stamp == Stamp{}) found(history_.add({}, {StateHistory::none, 0, digest, {}}));
  held_[device] = history_.find(state.stamp);
  if (held_[device] == StateHistory::none || history_.at(held_[device]).digest != digest)
    found(fmt::format("C3: {} was on a disk, but no device ever held it", text_of(state.stamp)));
  see(fmt::format("boot {} {} {}", device, text_of(state.stamp), digest));
}

void SimReferee::changed(std::size_t device, const runtime::AgreedState& state, const std::string& digest,
                         bool adopted) {
  see(fmt::format("state {} {} {} {}", device, text_of(state.stamp), digest, adopted));
  if (adopted) {
    held_[device] = history_.find(state.stamp);
    if (held_[device] == StateHistory::none || history_.at(held_[device]).digest != digest)
      found(fmt::format("C3: {} was adopted, but no device ever held it", text_of(state.stamp)));
    return;
  }
  ++steps_;
  StateHistory::State next{held_[device], state.stamp.step, digest, {}};
  for (const auto& [partition, progress] : state.partitions) next.next[partition] = progress.next;
  found(history_.add(state.stamp, std::move(next)));
  held_[device] = history_.find(state.stamp);
  found(check_books(state));
  found(check_rows(state, rows_));
}

void SimReferee::folded(const Fold& fold) {
  found(folds_.add(fold.next_offset, snapshot_hash(snapshot_of(fold))));
}

void SimReferee::published(std::span<const NextOffset> positions) {
  for (const NextOffset& position : positions) {
    RowCursor covered;
    if (committed_ != StateHistory::none)
      if (const auto at = history_.at(committed_).next.find(position.partition);
          at != history_.at(committed_).next.end())
        covered = at->second;
    if (covered.offset < position.offset)
      found(fmt::format("C4: offset {} of partition {} was published, and is not committed", position.offset,
                        position.partition.partition));
  }
}

}  // namespace rivulet::testing
