#include "tests/support/sim_referee.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sync/membership/snapshot.h"

namespace rivulet::testing {

using namespace sync::membership;

namespace {

/// Rounding between two models trained on the same rows in the same steps.
constexpr double same_loss = 1 + 1e-9;

}  // namespace

std::string id_of_device(std::size_t device) {
  return fmt::format("device-{:02}", device + 1);
}

std::size_t index_of_device(const std::string& id) {
  return std::stoul(id.substr(id.rfind('-') + 1)) - 1;
}

SimReferee::SimReferee(std::size_t devices, const Rules& rules, const SimStreams& streams,
                       IsDurable is_durable)
    : reader_("sim", rules),
      streams_(streams),
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
  const std::uint64_t run = fold().run.number;
  const auto record = reader_.take(entry);
  folded(fold());
  found(check_private(entry.bytes, "the control log"));
  // A HELLO names host and process, and a SNAP contains all HELLOs: they differ between runs of the program.
  if (record && std::holds_alternative<Hello>(*record))
    see("hello " + std::get<Hello>(*record).device);
  else if (!record || !std::holds_alternative<Snap>(*record))
    seen_.add(entry.bytes);
  if (fold().run.number == run && fold().committed != committed) check_commit();
  if (fold().view.number != view) check_view();
}

int SimReferee::committed() const {
  const auto at = committed_.find(fold().run.number);
  return at == committed_.end() ? StateHistory::none : at->second;
}

/// A view target is the group's last commit, or newer.
void SimReferee::check_view() {
  const ClosedView& view = fold().view;
  const int target = history_.find(view.target);
  if (target == StateHistory::none) return found("C4: a view starts from a state that no device ever had");
  if (history_.at(target).digest != view.digest) return found("C3: a view's target has another digest");
  if (fold().rules.restamp) history_.add_name({view.number, view.target.step}, target);
  if (!is_of_run(fold(), view.target)) found("C4: a view starts from a state of an earlier run");
  if (!history_.extends(target, committed()))
    found(fmt::format("C4: view {} starts from {}, which does not follow the committed {}", view.number,
                      text_of(view.target), text_of(fold().committed.stamp)));
}

void SimReferee::check_commit() {
  const Stamp& stamp = fold().committed.stamp;
  const int state = history_.find(stamp);
  ++commits_;
  if (state == StateHistory::none) return found("C4: a state that no device ever had was committed");
  if (!history_.extends(state, committed()))
    found(fmt::format("C4: the committed {} does not follow the one before it", text_of(stamp)));
  committed_[fold().run.number] = state;
}

/// SAVED is sent after the state is on disk (I6).
void SimReferee::said(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.find("saved") == std::string_view::npos) return;  // cheaper than parsing all of them
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
  if (state.stamp == Stamp{}) found(history_.add({}, {StateHistory::none, 0, digest}));
  if (books_.empty()) {
    books_.emplace_back();
    losses_.push_back(loss_of({}));
  }
  held_[device] = history_.find(state.stamp);
  if (held_[device] == StateHistory::none || history_.at(held_[device]).digest != digest)
    found(fmt::format("C3: {} was on a disk, but no device ever had it", text_of(state.stamp)));
  see(fmt::format("boot {} {} {}", device, text_of(state.stamp), digest));
}

void SimReferee::changed(std::size_t device, const runtime::AgreedState& state, const std::string& digest,
                         bool adopted) {
  if (!finding_.empty()) return;
  see(fmt::format("state {} {} {} {}", device, text_of(state.stamp), digest, adopted));
  if (adopted) {
    held_[device] = history_.find(state.stamp);
    if (held_[device] == StateHistory::none || history_.at(held_[device]).digest != digest)
      found(fmt::format("C3: {} was adopted, but no device ever had it", text_of(state.stamp)));
    return;
  }
  ++steps_;
  const int before = held_[device];
  found(history_.add(state.stamp, {before, state.stamp.step, digest}));
  held_[device] = history_.find(state.stamp);
  if (static_cast<std::size_t>(held_[device]) < books_.size()) return;  // the same bytes as another device's
  check_step(before, state);
}

/// C1, C2 and C9 for a new state.
void SimReferee::check_step(int before, const runtime::AgreedState& state) {
  Finding passed_over;
  books_.push_back(books_after(books_[static_cast<std::size_t>(before)], state, streams_, passed_over));
  losses_.push_back(loss_of(line_in(state.model)));
  if (books_.back().missing != books_[static_cast<std::size_t>(before)].missing)
    faults_.count(SimFault::rows_deleted);
  found(passed_over);
  found(check_ledger(state));
  found(check_rows(state, rows_, books_.back().missing));
  found(check_loss(losses_.back(), loss_of(books_.back().line), same_loss));
}

void SimReferee::sent(std::span<const std::byte> bytes) {
  found(check_private(bytes, "a message to another device"));
}

std::vector<double> SimReferee::losses() const {
  std::vector<double> losses;
  for (int state = committed(); state != StateHistory::none; state = history_.at(state).parent)
    losses.push_back(losses_[static_cast<std::size_t>(state)]);
  std::ranges::reverse(losses);
  return losses;
}

void SimReferee::folded(const Fold& fold) {
  found(folds_.add(fold.next_offset, snapshot_hash(snapshot_of(fold))));
}

void SimReferee::published(std::uint64_t run, std::span<const NextOffset> positions) {
  const auto newest = committed_.find(run);
  for (const NextOffset& position : positions) {
    RowCursor covered;
    if (newest != committed_.end()) {
      const auto& next = books_[static_cast<std::size_t>(newest->second)].next;
      if (const auto at = next.find(position.partition); at != next.end()) covered = at->second;
    }
    if (covered.offset < position.offset)
      found(fmt::format("C4: offset {} of partition {} was published, and is not committed", position.offset,
                        position.partition.partition));
  }
}

}  // namespace rivulet::testing
