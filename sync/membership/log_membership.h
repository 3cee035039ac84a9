#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sync/membership/describe.h"
#include "sync/membership/membership.h"
#include "sync/membership/shared_fold.h"

/// Private to membership/: a Membership over an OrderedLog.
namespace rivulet::sync::membership {

/// A record on its way into the log: it exists when it is read back, and may have been lost.
struct InFlight {
  bool active = false;
  TimePoint since{};
};

std::string make_nonce(const MembershipConfig& config);

class LogMembership final : public Membership {
 public:
  LogMembership(const MembershipConfig& config, OrderedLog& log)
      : config_(config),
        log_(log),
        own_fold_(config.shared_fold == nullptr ? std::make_unique<SharedFold>(log, config.job, config.rules)
                                                : nullptr),
        shared_(own_fold_ ? *own_fold_ : *config.shared_fold),
        reader_(shared_, config.hello.device) {
    config_.hello.nonce = make_nonce(config);
  }

  Result<std::optional<ViewSpec>> poll(TimePoint now) override;
  void hold_state(const Stamp& stamp, const std::string& digest, std::uint64_t rows) override;
  void leave_view(const std::string& reason) override;
  Status say_saved(const Stamp& stamp, const std::string& digest, const std::string& file_hash) override;
  [[nodiscard]] bool announcing() const override { return saved_.has_value(); }
  [[nodiscard]] std::uint64_t announced() const override { return announced_; }
  void leave_group(const std::string& reason, Ends ends) override;
  [[nodiscard]] bool stop_asked() const override {
    const std::int64_t began = session_ >= 0 ? session_ : refused_at_;
    return began >= 0 && stopped_at_ > began;
  }
  [[nodiscard]] bool view_broken() const override;
  [[nodiscard]] std::vector<std::string> waiting_for() const override;
  [[nodiscard]] const Committed& committed() const override { return committed_; }
  [[nodiscard]] const Fold& fold() const override { return fold_; }

  Status set(std::uint64_t token, const std::string& key, std::span<const std::byte> value) override;
  std::vector<std::byte> get(std::uint64_t token, const std::string& key, bool& found) override;

 private:
  Status read_log();
  void notice_own(std::int64_t offset, const ControlRecord& record);
  std::optional<ViewSpec> new_view();
  [[nodiscard]] const NextView& next_view(bool only_live) const {
    return shared_.next_view(only_live, config_.hello.devices);
  }

  // membership_checks.cpp: what ends this device, and for what it waits
  Status refuse(ErrorCode code, const std::string& why);
  Status check_session(TimePoint now);
  void note_refusal(TimePoint now);
  Status check_state();
  [[nodiscard]] Obstacle ends_me(bool only_live) const;
  Status check_conflict(TimePoint now);
  [[nodiscard]] bool somebody_left_for(WhyNot cause) const;
  Status end_by_conflict();

  // membership.cpp: what it writes
  Status act(TimePoint now);
  Status say_hello(TimePoint now);
  Status wait_for_place(TimePoint now);
  Status answer(TimePoint now);
  Status append_ready(TimePoint now);
  Status say_ready(TimePoint now);
  Status say_close(TimePoint now);
  Status confirm_view();
  Status say_snap(TimePoint now);
  Status say_saved_again(TimePoint now);
  [[nodiscard]] bool may_send(const InFlight& record, TimePoint now) const;
  [[nodiscard]] bool ready_is_asked_for() const;
  Status append(const ControlRecord& record);

  MembershipConfig config_;
  OrderedLog& log_;
  const std::unique_ptr<SharedFold> own_fold_;
  SharedFold& shared_;
  SharedFold::Reader reader_;
  const Fold& fold_ = shared_.fold();  // guarded, as session_ is: set() and get() of other threads read them
  std::int64_t session_ = -1;
  mutable std::optional<std::string> meant_job_;  // looked for once: of a thousand names, each in full
  std::int64_t refused_at_ = -1;  // offset of the first HELLO that did not get the place of another session
  TimePoint refused_since_{};
  std::int64_t asked_at_ = -1;  // offset of a HELLO of this id that asks whether this session lives
  InFlight answer_;
  std::int64_t stopped_at_ = -1;  // as of the last poll()
  Committed committed_;           // same
  std::uint64_t token_ = 0;       // of the view handed out last
  bool in_view_ = false;
  bool left_ = false;
  Stamp stamp_;             // of the state held
  std::string digest_;      // same
  std::uint64_t rows_ = 0;  // same
  std::string reason_;      // why the last view was left
  InFlight hello_, ready_, snap_, saved_sent_;
  std::optional<Saved> saved_;  // announced last in this view and not read back
  std::uint64_t announced_ = 0;
  TimePoint closable_since_{};
  bool closable_ = false;
  InFlight close_;
  std::pair<std::uint64_t, std::int64_t> close_for_{0, -1};  // view and newest HELLO the CLOSE was sent for
  std::int64_t confirmed_for_ = -1;                          // newest HELLO the view was confirmed for
  bool in_conflict_ = false;
  Obstacle conflict_;    // what it is
  bool of_all_ = false;  // it ends all devices, not this one alone
  TimePoint conflict_since_{};
  std::optional<Error> final_;
  WhyNot final_cause_ = WhyNot::none;  // of final_, if the others end by it, too
};

}  // namespace rivulet::sync::membership
