#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/wake.h"
#include "devices/device.h"
#include "devices/trainer.h"
#include "runtime/decisions/decision.h"
#include "runtime/state/agreed_state.h"
#include "sync/residual/residual.h"
#include "sync/round/session.h"
#include "sync/transport/memory_transport.h"

namespace rivulet::runtime {

/// All members of one recorded view in this process: the sessions, compressors and collectives of real
/// devices over the in-memory transport. Each enters a round with its recorded facts. Owner: one thread.
class ReplayGroup {
 public:
  struct Parts {
    sync::SessionConfig session;
    sync::SyncCatalog catalog;
    const devices::ModelLayout& layout;
    devices::Device& device;
    std::map<std::string, sync::Residual>& residuals;  ///< by device id: they outlive views
    std::uint64_t rows = 0;                            ///< row clock of the state from which the view starts
  };
  /// Errors: unavailable (memory).
  static Result<std::unique_ptr<ReplayGroup>> create(const ViewRecord& view, const Parts& parts);
  ~ReplayGroup();

  /// Before a replayed step: a restarted device has the residual saved with the state of the view, or none.
  /// Errors: bad_record (the residual is from before the replay).
  Status compare_residuals(const RoundRecord& round);
  /// True if contributions of the next round leave before its plan is known.
  [[nodiscard]] bool speculates() const;
  /// Exchanges facts (and contributions, if it speculates) and computes the plan. Errors: protocol, diverged
  /// (the facts are not from one round).
  Status meet(const RoundRecord& round);
  [[nodiscard]] const sync::policy::RoundPlan& plan() const;
  [[nodiscard]] const sync::FactsTable& table() const;
  /// The policy state after this round.
  [[nodiscard]] const sync::policy::PolicyState& policy_state() const;
  /// Destination for a rank's contribution of this round, on the device.
  [[nodiscard]] const GradientView& contribution(std::size_t rank) const { return contributions_[rank]; }
  /// Sums the contributions. Errors: protocol (sums differ between ranks), unavailable.
  Result<GradientView> agree();
  /// `left`: the state after the round.
  void finish(bool applied, const AgreedState& left);

 private:
  class NoWake;
  ReplayGroup();
  Status allocate(std::size_t world, const Parts& parts);
  Status poll_all();

  VirtualClock clock_;
  std::unique_ptr<NoWake> wake_;
  sync::MemoryNetwork network_;
  devices::Device* device_ = nullptr;
  std::vector<std::unique_ptr<devices::Memory>> memory_;
  std::vector<GradientView> contributions_;  ///< [world] of [P + B]
  std::vector<GradientView> scratch_;
  std::vector<std::unique_ptr<sync::Transport>> wires_;
  std::vector<std::unique_ptr<sync::SyncSession>> sessions_;  ///< index = rank
  std::vector<sync::Residual*> residuals_;                    ///< index = rank
};

}  // namespace rivulet::runtime
