#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/log.h"
#include "core/result.h"
#include "sync/membership/fold.h"
#include "sync/message/view.h"

namespace rivulet::sync::membership {

class SharedFold;

struct MembershipConfig {
  std::string job;
  Hello hello;           ///< without nonce and state
  bool limited = false;  ///< this process was started with --stop-after rows or rounds
  /// A state older than the last saved one, from which this device may resume (announced while it has that
  /// state); none: not allowed.
  std::optional<Stamp> rollback_to = {};
  /// Saved states that this device cannot use, with the reason; empty: none. Shown as the cause if no device
  /// has the group's saved state.
  std::string unusable = {};
  /// Size of a state, if a device copies it from a member before it joins; 0: it receives it inside the view.
  std::uint64_t copied_bytes = 0;
  Rules rules = {};
  std::uint64_t nonce_seed = 0;
  Duration close_wait =
      std::chrono::seconds(1);  ///< members other than the first wait this long before they close
  Duration lost_wait = std::chrono::milliseconds(
      250);  ///< a view without lost members waits this long: they may say otherwise
  Duration return_wait = std::chrono::seconds(1);  ///< the same for a member that nobody has missed
  Duration start_wait = std::chrono::seconds(5);   ///< the same for the usual number of devices, at a start
  Duration mismatch_grace =
      std::chrono::seconds(3);                      ///< minimum duration of a conflict before it is an error
  Duration knock_every = std::chrono::seconds(30);  ///< a device that waits to join repeats its READY
  Duration takeover_wait =
      std::chrono::seconds(5);  ///< a session that does not answer within this time counts as dead
  Duration retry_after =
      std::chrono::seconds(5);  ///< a record not read back within this time is appended again
  SharedFold* shared_fold =
      nullptr;  ///< shared by all devices of this log in this process; null: a private one
};

/// What a device knows of the other members of a view that it leaves: ids, sorted.
struct Departure {
  std::vector<std::string> lost = {};       ///< did not answer
  std::vector<std::string> unreached = {};  ///< of these, could not be connected
  std::vector<std::string> accused = {};    ///< sent wrong messages, or have a different state
  /// Devices outside the view that get its last rounds from this device, at the end of a copy.
  std::vector<std::string> copied = {};
};

/// A background copy of the state: from a member to a device that waits to join. `link` is the connection of
/// these two.
struct StateRequest {
  ViewSpec link;
  std::string donor;
  std::string receiver;
};

/// Forms views of a group of `hello.devices` through the job's control log. Every device folds the same
/// log and acts only on records it has read; there is no leader. Owner: the train thread, except the
/// AddressBook side, which is thread-safe (the transport connects on its own thread).
class Membership : public AddressBook {
 public:
  ~Membership() override = default;
  /// Reads the log and advances the protocol: HELLO, READY, CLOSE. Returns the newest closed view with this
  /// device, if it was not returned before. Never waits. Errors: unavailable (control topic), superseded (a
  /// newer session of this id, with host and pid; or two processes that replace each other), invalid_config
  /// (names the devices): a configuration that differs from the formed group's, with key and both values; a
  /// partition claimed twice; more devices than job.devices; a state of a different or an earlier run; a new
  /// run over one that has not ended; a live session of this id that this process cannot replace; or a saved
  /// state that no device has any more, the only one of these that stops all devices. diverged: the others
  /// have found the state or the messages of this device wrong twice. source_lost is not final: poll again.
  virtual Result<std::optional<ViewSpec>> poll(TimePoint now) = 0;
  /// Sets the state of this device, with its row clock, for all following READYs. Call before the first
  /// poll(), and before leave_view() after a change.
  virtual void announce_state(const Stamp& stamp, const std::string& digest, std::uint64_t rows) = 0;
  /// Leaves this view. READY for the next one follows.
  virtual void leave_view(const std::string& reason, const Departure& members = {}) = 0;
  /// Announces a state of the last view on this device's disk. Does nothing once the next view is closed.
  virtual Status post_saved(const Stamp& stamp, const std::string& digest, const std::string& file_hash) = 0;
  /// Whether a SAVED record of this session has not been read back from the log yet.
  [[nodiscard]] virtual bool announcing() const = 0;
  /// Number of this session's SAVED records that were read back from the log.
  [[nodiscard]] virtual std::uint64_t announced() const = 0;
  /// Writes LEAVE: this session joins no other view. Only once; announcements in the current view still
  /// count. Writes nothing without a session.
  virtual void leave_group(const std::string& reason, Ends ends) = 0;
  /// True once the log shows that the whole job was stopped after this session began. The device must stop in
  /// the same round as the others.
  [[nodiscard]] virtual bool stop_requested() const = 0;
  /// Whether the log shows that a member of the current view has a new session or stops, so that the
  /// view cannot continue.
  [[nodiscard]] virtual bool view_broken() const = 0;
  /// Whether a device waits to join the view of this device, and there is a place for it.
  [[nodiscard]] virtual bool joiner_waits() const = 0;
  /// The copy that a waiting device asks of this member. If several do, that of the longest wait.
  [[nodiscard]] virtual std::optional<StateRequest> copy_to_give() const = 0;
  /// The copy that this device asks for while it waits to join; none while it needs no copy.
  [[nodiscard]] virtual std::optional<StateRequest> copy_to_take() const = 0;
  /// The copy has failed: asks the next member. After copies_max failures this device joins without one.
  virtual void copy_failed() = 0;
  /// Number of failed copies since this device waits.
  [[nodiscard]] virtual std::uint64_t failed_copies() const = 0;
  /// Whether the group trains without this device, which waits to join it.
  [[nodiscard]] virtual bool joining() const = 0;
  /// Whether this device must not join yet, because it was lost again and again.
  [[nodiscard]] virtual bool cooling_down() const = 0;
  /// Whether a group that changes its size has been formed, and has too few devices to continue.
  [[nodiscard]] virtual bool below_min() const = 0;
  /// Ids of the devices that the next view waits for, or one phrase with a different reason; for users.
  [[nodiscard]] virtual std::vector<std::string> waiting_for() const = 0;
  /// The committed state as of this device's last poll().
  [[nodiscard]] virtual const Committed& committed() const = 0;
  /// The fold. If it is shared, it may be ahead of this device's last poll().
  [[nodiscard]] virtual const Fold& fold() const = 0;
};

std::unique_ptr<Membership> make_membership(const MembershipConfig&, OrderedLog&);

/// An OrderedLog in memory for the nodes of one process; thread-safe. open() returns a reader.
class MemoryLog {
 public:
  MemoryLog();
  ~MemoryLog();
  /// `clock`: tells the time of records that are appended through this end; null: all have time 0.
  std::unique_ptr<OrderedLog> open(const Clock* clock = nullptr);
  /// For tests: number of records.
  [[nodiscard]] std::size_t size() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace rivulet::sync::membership
