#include "tests/support/replay/replay_group.h"

#include <algorithm>

namespace rivulet::runtime {
namespace {

/// The in-memory transport needs no addresses.
class NoAddresses final : public sync::AddressBook {
 public:
  Status set(std::uint64_t, const std::string&, std::span<const std::byte>) override { return ok(); }
  std::vector<std::byte> get(std::uint64_t, const std::string&, bool& found) override {
    found = false;
    return {};
  }
};

/// The sessions use the configuration: rejects the log of another one, or a forged one.
Status check_policy(const ViewRecord& view, const sync::policy::PolicyConfig& own) {
  sync::policy::PolicyConfig recorded = view.policy;
  recorded.checkpoint_rounds = own.checkpoint_rounds;  // a dry run has none
  if (recorded == own) return ok();
  return Error{ErrorCode::bad_record, "view " + std::to_string(view.number) +
                                          " was planned with other settings than those of the configuration"};
}

}  // namespace

/// Nothing sleeps in a replay.
class ReplayGroup::NoWake final : public Wake {
 public:
  void notify() noexcept override {}
};

ReplayGroup::ReplayGroup() : wake_(std::make_unique<NoWake>()) {}
ReplayGroup::~ReplayGroup() = default;

Result<std::unique_ptr<ReplayGroup>> ReplayGroup::create(const ViewRecord& view, const Parts& parts) {
  if (auto fits = check_policy(view, parts.session.policy); !fits) return fits.error();
  std::unique_ptr<ReplayGroup> group(new ReplayGroup());
  const std::size_t world = view.members.size();
  if (auto allocated = group->allocate(world, parts); !allocated) return allocated.error();
  NoAddresses addresses;
  sync::ViewSpec spec;
  spec.number = view.number;
  spec.token = view.token;
  spec.members = view.members;
  spec.target = view.from;
  spec.digest = view.digest;
  const sync::Connect connect = group->network_.connect_for(group->clock_);
  for (spec.rank = 0; spec.rank < world; ++spec.rank) {
    auto wires = connect(spec, addresses, *group->wake_);
    if (!wires) return wires.error();
    group->wires_.push_back(std::move(wires).value());
  }
  for (const auto& wires : group->wires_)
    RIVULET_CHECK(wires->connected() == Progress::done, "the in-memory transport connects immediately");
  sync::SessionConfig session = parts.session;
  session.policy = view.policy;
  // Contributions follow from the facts. Dense ones have the same bits whenever they leave; a compressed one
  // that left early used a predicted weight.
  session.speculate = session.speculate && view.policy.compression_policy != "none";
  for (spec.rank = 0; spec.rank < world; ++spec.rank) {
    auto& residual =
        parts.residuals
            .try_emplace(view.members[spec.rank], session.shape,
                         sync::policy::exchanges_deltas(view.policy, sync::policy::builtin_controllers()),
                         session.delta_per_gradient)
            .first->second;
    residual.resolve(view.from, parts.rows);
    residual.follow({view.number, view.from.step}, parts.rows);
    group->residuals_.push_back(&residual);
    group->sessions_.push_back(
        std::make_unique<sync::SyncSession>(*group->wires_[spec.rank], spec, session, parts.catalog, residual,
                                            group->scratch_[spec.rank], view.state.memory));
    if (view.state.round > 0) group->sessions_.back()->resume_from(view.state);
  }
  return group;
}

Status ReplayGroup::allocate(std::size_t world, const Parts& parts) {
  device_ = &parts.device;
  const auto& layout = parts.layout;
  const std::size_t bytes = layout.contribution() * bytes_of(layout.scalar);
  for (std::size_t rank = 0; rank < world; ++rank) {
    auto contribution = parts.device.allocate(bytes);
    if (!contribution) return contribution.error();
    auto scratch = parts.device.allocate_shared(bytes);
    if (!scratch) return scratch.error();
    contributions_.push_back(contribution.value()->view(layout.scalar, layout.contribution()));
    scratch_.push_back(scratch.value()->view(layout.scalar, layout.contribution()));
    memory_.push_back(std::move(contribution).value());
    memory_.push_back(std::move(scratch).value());
  }
  return ok();
}

/// The transport has no latency: each pass over all ranks makes progress, or none ever will.
Status ReplayGroup::poll_all() {
  const std::size_t passes_max = 1000 * sessions_.size();
  for (std::size_t pass = 0; pass < passes_max; ++pass) {
    bool done = true;
    for (const auto& session : sessions_) {
      const Progress p = session->poll();
      if (p == Progress::failed) return session->error();
      done = done && p == Progress::done;
    }
    if (done) return ok();
  }
  RIVULET_CHECK(false, "a replayed exchange does not end");
  return ok();
}

bool ReplayGroup::speculates() const {
  return sessions_.front()->speculates();
}

Status ReplayGroup::meet(const RoundRecord& round) {
  const bool early = speculates();
  for (std::size_t rank = 0; rank < sessions_.size(); ++rank) {
    GradientView mine;
    if (early) {
      auto host = device_->to_host(contributions_[rank]);
      if (!host) return host.error();
      mine = host.value();
    }
    sessions_[rank]->begin_facts(round.table.facts[rank], round.table.sections[rank], mine);
  }
  return poll_all();
}

Status ReplayGroup::compare_residuals(const RoundRecord& round) {
  for (std::size_t rank = 0; rank < sessions_.size(); ++rank) {
    const bool kept_something = (round.table.facts[rank].flags & sync::flag_residual) != 0;
    if (!kept_something) residuals_[rank]->forget();
    if (kept_something && residuals_[rank]->empty())
      return Error{
          ErrorCode::bad_record,
          "a device had something left to send from before this replay begins, which no log records: "
          "replay from the beginning of a run"};
  }
  return ok();
}

const sync::policy::RoundPlan& ReplayGroup::plan() const {
  return sessions_.front()->plan();
}
const sync::policy::PolicyState& ReplayGroup::policy_state() const {
  return sessions_.front()->policy_state();
}

const sync::FactsTable& ReplayGroup::table() const {
  return sessions_.front()->table();
}

Result<GradientView> ReplayGroup::agree() {
  for (std::size_t rank = 0; rank < sessions_.size(); ++rank) {
    auto mine = device_->to_host(contributions_[rank]);
    if (!mine) return mine.error();
    sessions_[rank]->begin_payload(mine.value());
  }
  if (auto agreed = poll_all(); !agreed) return agreed.error();
  const GradientView& first = sessions_.front()->agreed();
  for (const auto& session : sessions_)
    if (!std::ranges::equal(session->agreed().host_bytes(), first.host_bytes()))
      return Error{ErrorCode::protocol, "the agreed sum differs between devices"};
  return first;
}

void ReplayGroup::finish(bool applied, const AgreedState& left) {
  for (const auto& session : sessions_) session->finish(applied);
  for (sync::Residual* residual : residuals_) residual->follow(left.stamp, left.rows);
}

}  // namespace rivulet::runtime
