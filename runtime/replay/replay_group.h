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
#include "sync/collective/memory_transport.h"
#include "sync/round/compressor_cache.h"
#include "sync/round/session.h"

namespace rivulet::runtime {

/// All members of one recorded view in this process: the sessions, compressors and collectives of real
/// devices over in-memory wires. Each enters a round with the facts that it entered it with. Owner: one
/// thread.
class ReplayGroup {
 public:
  struct Parts {
    sync::SessionConfig session;
    sync::SyncCatalog catalog;
    const devices::ModelLayout& layout;
    devices::Device& device;
    std::map<std::string, sync::CompressorCache>& shelves;  ///< by device id: residuals outlive views
  };
  /// Errors: unavailable (memory).
  static Result<std::unique_ptr<ReplayGroup>> create(const ViewRecord& view, const Parts& parts);
  ~ReplayGroup();

  /// Facts to the plan that all of them make. Errors: protocol, diverged (the facts cannot be of one round).
  Status meet(const RoundRecord& round);
  [[nodiscard]] const sync::policy::RoundPlan& plan() const;
  [[nodiscard]] const sync::FactsTable& table() const;
  /// What the controllers remember behind this round.
  [[nodiscard]] const std::vector<sync::policy::ControllerMemory>& controllers() const;
  /// Where a rank's contribution of this round goes, on the device.
  [[nodiscard]] const GradientView& contribution(std::size_t rank) const { return contributions_[rank]; }
  /// Contributions to the agreed sum. Errors: protocol (they differ between ranks), unavailable.
  Result<GradientView> agree();
  void finish(bool applied);

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
};

}  // namespace rivulet::runtime
