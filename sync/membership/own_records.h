#pragma once
#include <cstdint>
#include <optional>
#include <utility>

#include "core/time.h"
#include "sync/membership/records.h"

/// Private to membership/: decides when this device must write a record, one class per kind. LogMembership
/// writes them. Owner: the train thread.
namespace rivulet::sync::membership {

/// A record that was appended but not read back yet. It may be lost.
class InFlight {
 public:
  void sent(TimePoint now) { since_ = now; }
  void read_back() { since_.reset(); }
  [[nodiscard]] bool active() const noexcept { return since_.has_value(); }
  /// Whether no record is in flight, or it is old enough to count as lost.
  [[nodiscard]] bool may_send(TimePoint now, Duration retry_after) const {
    return !since_ || now - *since_ >= retry_after;
  }

 private:
  std::optional<TimePoint> since_;
};

/// The session that a HELLO of this device begins, unless a session of the same id keeps its place.
class OwnSession {
 public:
  /// Offset of its HELLO, or of a HELLO read back but not evaluated yet; -1 if none.
  [[nodiscard]] std::int64_t offset() const noexcept { return offset_; }
  [[nodiscard]] bool known() const noexcept { return offset_ >= 0; }
  /// Records that a HELLO with this device's id was read. `own`: this process wrote it.
  void read(std::int64_t offset, bool own) {
    if (own && !known()) offset_ = offset;
    if (!own && known()) requested_at_ = offset;
  }
  /// Records that the HELLO began no session, because the present session keeps its place for now.
  void refused(TimePoint now) {
    if (!was_refused()) refused_ = {offset_, now};
    offset_ = -1;
    hello_.read_back();
  }
  [[nodiscard]] bool was_refused() const noexcept { return refused_.first >= 0; }
  /// Offset of the first refused HELLO.
  [[nodiscard]] std::int64_t refused_at() const noexcept { return refused_.first; }
  [[nodiscard]] Duration waiting_for_place(TimePoint now) const { return now - refused_.second; }

  [[nodiscard]] bool owes_hello(TimePoint now, Duration retry_after) const {
    return hello_.may_send(now, retry_after);
  }
  void sent_hello(TimePoint now) { hello_.sent(now); }

  /// Whether to answer a process of the same id that checks this session. `heard`: offset of its last record.
  [[nodiscard]] bool owes_answer(std::int64_t heard, TimePoint now, Duration retry_after) {
    if (heard > requested_at_) requested_at_ = -1;
    return requested_at_ >= 0 && answer_.may_send(now, retry_after);
  }
  void sent_answer(TimePoint now) { answer_.sent(now); }

  /// Sets the offset at which the whole job was stopped, as of the last poll().
  void read_stop(std::int64_t stopped_at) noexcept { stopped_at_ = stopped_at; }
  [[nodiscard]] bool stopped() const noexcept {
    const std::int64_t began = known() ? offset_ : refused_.first;
    return began >= 0 && stopped_at_ > began;
  }

 private:
  std::int64_t offset_ = -1;
  std::pair<std::int64_t, TimePoint> refused_{-1, {}};
  std::int64_t requested_at_ = -1;
  std::int64_t stopped_at_ = -1;
  InFlight hello_, answer_;
};

/// A saved state of the current view that is announced but not read back yet. The caller sends the first
/// SAVED. Repeating it matters: after a stream falls silent there is no further checkpoint, so without this
/// SAVED the last state would never count.
class SavedNotice {
 public:
  const Saved& announce(Saved saved) {
    repeat_ = {};
    return saved_.emplace(std::move(saved));
  }
  void read(const Saved& saved) {
    ++announced_;
    if (saved_ && saved.stamp == saved_->stamp) saved_.reset();
  }
  void leave_view() { saved_.reset(); }
  [[nodiscard]] bool pending() const noexcept { return saved_.has_value(); }
  [[nodiscard]] std::uint64_t announced() const noexcept { return announced_; }
  /// Returns the record to repeat, or nullptr. The first call only starts the timer.
  const Saved* again(TimePoint now, Duration retry_after) {
    if (!saved_) return nullptr;
    const bool first = !repeat_.active();
    if (!repeat_.may_send(now, retry_after)) return nullptr;
    repeat_.sent(now);
    return first ? nullptr : &*saved_;
  }

 private:
  std::optional<Saved> saved_;
  InFlight repeat_;
  std::uint64_t announced_ = 0;
};

/// Decides when this device closes the next view.
class Closing {
 public:
  /// A view that can be closed, by the records that it depends on.
  struct Candidate {
    std::uint64_t number = 0;
    std::size_t devices = 0;
    std::int64_t newest = -1;  ///< offset of its newest READY
    bool operator==(const Candidate&) const = default;
  };
  struct Patience {
    Duration others{};  ///< for devices that may still come, since the view last grew
    Duration
        predecessor{};  ///< the second device waits this long for the first, each further one a bit longer
    Duration retry_after{};
  };

  /// Records that the next view cannot be closed, or does not include this device.
  void cannot() noexcept { closable_since_.reset(); }
  /// Records that the last view goes on.
  void must_not() noexcept {
    cannot();
    largest_ = {};
  }
  /// Call while it can be closed. `place`: of this device among its members; the first closes it.
  [[nodiscard]] bool due(const Candidate& candidate, std::size_t place, TimePoint now,
                         const Patience& patience) {
    if (!closable_since_) closable_since_ = now;
    // A repeated READY is no news: else a device that starts again and again would hold all up.
    if (candidate.number != largest_.number || candidate.devices > largest_.devices) {
      largest_ = candidate;
      grown_at_ = now;
    }
    constexpr Duration step = std::chrono::milliseconds(50);
    const Duration turn =
        place == 0 ? Duration(0) : patience.predecessor + step * static_cast<int>(place - 1);
    const TimePoint others_until = grown_at_ + patience.others;
    if (now < *closable_since_ + turn || now < others_until) return false;
    if (patience.others > Duration(0) && now < others_until + turn) return false;
    return sent_for_ != candidate || close_.may_send(now, patience.retry_after);
  }
  void sent(const Candidate& candidate, TimePoint now) {
    sent_for_ = candidate;
    close_.sent(now);
  }

 private:
  std::optional<TimePoint> closable_since_;
  Candidate largest_;
  TimePoint grown_at_{};
  InFlight close_;
  Candidate sent_for_;
};

}  // namespace rivulet::sync::membership
