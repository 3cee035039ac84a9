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
  /// A state older than what was saved, from which this device may resume all the same (announced while it
  /// holds that one); none: it may not.
  std::optional<Stamp> goes_back_to = {};
  /// What this device has saved and cannot use, and why; empty: nothing. The cause where nobody has the state
  /// that was saved.
  std::string unusable = {};
  Rules rules = {};
  std::uint64_t nonce_seed = 0;
  Duration close_wait =
      std::chrono::seconds(1);  ///< others than the first member wait this long before they close
  Duration mismatch_grace =
      std::chrono::seconds(3);                       ///< a conflict must last this long before it is an error
  Duration takeover_wait = std::chrono::seconds(5);  ///< a session that does not answer for so long is dead
  Duration retry_after = std::chrono::seconds(5);    ///< a record not read back by then is appended again
  SharedFold* shared_fold = nullptr;  ///< of this log, of all its devices in this process; null: one's own
};

/// Forms views of a fixed group of `hello.devices` through the job's control log. Every device folds the same
/// log and acts only on what it has read; nobody is leader. Owner: the train thread, except the AddressBook
/// side, which is thread-safe (the transport connects on its own thread).
class Membership : public AddressBook {
 public:
  ~Membership() override = default;
  /// Reads the log and moves the protocol on: HELLO, READY, CLOSE. Returns a view this device is a member of
  /// when one newer than the last returned has been closed. Never waits.
  /// Errors: unavailable (control topic), invalid_config (this device does not fit into a group that has
  /// formed: key and both values and both devices named; or partition claimed twice, both devices named; or
  /// more devices than job.devices; or a state of another or an earlier run; or a new run over one that has
  /// not ended; or a session of this id lives and this one cannot serve in its place; or nobody holds the
  /// state that was saved, which alone ends all), superseded (a newer session of this id: host and pid named;
  /// or two processes that replace each other). source_lost is not final: poll again.
  virtual Result<std::optional<ViewSpec>> poll(TimePoint now) = 0;
  /// What this device holds, with its row clock; part of every READY from now on. Before the first poll(),
  /// and before leave_view() when it has changed.
  virtual void hold_state(const Stamp& stamp, const std::string& digest, std::uint64_t rows) = 0;
  /// This view is over for me; READY for the next one follows.
  virtual void leave_view(const std::string& reason) = 0;
  /// A state of the current view is on the disk of this device. Outside a view it is not announced.
  virtual Status say_saved(const Stamp& stamp, const std::string& digest, const std::string& file_hash) = 0;
  /// A saved state was announced and has not been read back yet.
  [[nodiscard]] virtual bool announcing() const = 0;
  /// How many saved states of this session were read back.
  [[nodiscard]] virtual std::uint64_t announced() const = 0;
  /// This session wants no other view (LEAVE). Once; what was announced in the current view still counts.
  /// Without a session nobody knows of this device, and nothing is written.
  virtual void leave_group(const std::string& reason, Ends ends) = 0;
  /// True once the log shows that the whole job was stopped after this session began: end in the same round
  /// as the others.
  [[nodiscard]] virtual bool stop_asked() const = 0;
  /// True when the log shows that a member of the current view has started a new session or
  /// stops in it: the view cannot continue.
  [[nodiscard]] virtual bool view_broken() const = 0;
  /// Device ids missing for the next view, or one phrase for what it waits for; for people.
  [[nodiscard]] virtual std::vector<std::string> waiting_for() const = 0;
  /// What this device knew to be committed after its last poll().
  [[nodiscard]] virtual const Committed& committed() const = 0;
  /// May be ahead of this device's last poll() where it is shared.
  [[nodiscard]] virtual const Fold& fold() const = 0;
};

std::unique_ptr<Membership> make_membership(const MembershipConfig&, OrderedLog&);

/// An OrderedLog in memory, shared by the nodes of one process; thread-safe. open() = one reader's end.
class MemoryLog {
 public:
  MemoryLog();
  ~MemoryLog();
  std::unique_ptr<OrderedLog> open();
  /// For tests: everything in it so far.
  [[nodiscard]] std::size_t size() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace rivulet::sync::membership
