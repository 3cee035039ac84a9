#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sync/membership/conflict.h"
#include "sync/membership/describe.h"
#include "sync/membership/membership.h"
#include "sync/membership/own_records.h"
#include "sync/membership/shared_fold.h"
#include "sync/membership/waiting.h"

/// Private to membership/: a Membership over an OrderedLog.
namespace rivulet::sync::membership {

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
    next_ready_.device = config.hello.device;
    next_ready_.limited = config.limited;
    next_ready_.copy.bytes = config.hello.devices.is_fixed() ? 0 : config.copied_bytes;
  }

  Result<std::optional<ViewSpec>> poll(TimePoint now) override;
  void announce_state(const Stamp& stamp, const std::string& digest, std::uint64_t rows) override;
  void leave_view(const std::string& reason, const Departure& members) override;
  Status post_saved(const Stamp& stamp, const std::string& digest, const std::string& file_hash) override;
  [[nodiscard]] bool announcing() const override { return saved_.pending(); }
  [[nodiscard]] std::uint64_t announced() const override { return saved_.announced(); }
  void leave_group(const std::string& reason, Ends ends) override;
  [[nodiscard]] bool stop_requested() const override { return session_.stopped(); }
  [[nodiscard]] bool view_broken() const override;
  [[nodiscard]] bool joiner_waits() const override;
  [[nodiscard]] std::optional<StateRequest> copy_to_give() const override;
  [[nodiscard]] std::optional<StateRequest> copy_to_take() const override;
  void copy_failed() override { ++next_ready_.copy.failed; }
  [[nodiscard]] std::uint64_t failed_copies() const override { return next_ready_.copy.failed; }
  [[nodiscard]] bool joining() const override;
  [[nodiscard]] bool cooling_down() const override;
  [[nodiscard]] bool below_min() const override;
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

  // membership_checks.cpp: conditions that stop this device, and what it waits for
  Status refuse(ErrorCode code, const std::string& why);
  Status check_session(TimePoint now);
  Status check_state();
  [[nodiscard]] AdmissionError ends_me(bool only_live) const;
  Status check_conflict(TimePoint now);
  [[nodiscard]] bool somebody_left_for(WhyNot cause) const;
  Status end_by_conflict();

  // membership.cpp: records it writes
  Status act(TimePoint now);
  Status post_hello(TimePoint now);
  Status wait_for_place(TimePoint now);
  Status answer(TimePoint now);
  Status append_ready(TimePoint now);
  Status post_ready(TimePoint now);
  Status post_close(TimePoint now);
  [[nodiscard]] Duration patience_with(StillMissing missing) const;
  [[nodiscard]] bool knocks_again(TimePoint now) const;
  [[nodiscard]] bool says_otherwise(const Ready& said) const;
  [[nodiscard]] std::string choose_donor() const;
  Status confirm_view(TimePoint now);
  Status post_snap(TimePoint now);
  [[nodiscard]] StateRequest request_of(const DeviceEntry& receiver) const;
  [[nodiscard]] bool ready_requested() const;
  [[nodiscard]] bool request_waits(TimePoint now, const DeviceEntry& me) const;
  Status append(const ControlRecord& record);

  MembershipConfig config_;
  OrderedLog& log_;
  const std::unique_ptr<SharedFold> own_fold_;
  SharedFold& shared_;
  SharedFold::Reader reader_;
  const Fold& fold_ = shared_.fold();  // guarded like session_: other threads read both in set() and get()
  OwnSession session_;
  Committed committed_;      // as of the last poll()
  std::uint64_t token_ = 0;  // token of the last returned view
  bool in_view_ = false;
  bool left_ = false;
  Ready next_ready_;  // the current state, and why the last view was left
  Departure departure_;
  InFlight ready_, snap_, confirm_;
  TimePoint ready_sent_{};
  SavedNotice saved_;
  Closing closing_;
  Conflict conflict_;
  std::optional<Error> final_;
  mutable std::optional<std::string> meant_job_;  // searched once, since the search compares every job name
};

}  // namespace rivulet::sync::membership
