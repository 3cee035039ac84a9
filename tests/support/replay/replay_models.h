#pragma once
#include <map>
#include <memory>
#include <string>

#include "core/clock.h"
#include "runtime/state/announced.h"
#include "runtime/train/local_model.h"
#include "sync/policy/learning_rate.h"
#include "sync/residual/residual.h"
#include "tests/support/replay/replay_rows.h"

namespace rivulet::runtime {

/// The private copies of all devices of a recorded run. Recomputes local steps from the announced rows.
/// Owner: one thread.
class ReplayModels {
 public:
  struct Parts {
    devices::Device& device;
    devices::Trainer& trainer;
    const devices::OptimizerConfig& optimizer;
  };
  explicit ReplayModels(const Parts& parts) : parts_(parts) {}

  /// True if the contributions of a round are deltas: devices made local steps, or some were left from a lost
  /// view.
  static bool local_steps_of(const sync::policy::Schedule& entered, const sync::FactsTable& table);

  /// Private parts of all devices after the last synchronization, by id.
  using Kept = std::map<std::string, PrivatePart>;
  [[nodiscard]] Kept kept() const;
  /// Errors: unavailable (memory).
  Status restore(const Kept& kept, const AgreedState& state);
  /// A view begins with `state`, and this device with the private part of this digest (0: none). Errors:
  /// bad_record (the earlier rounds resulted in another one).
  Status enter(const std::string& id, std::uint64_t digest, const AgreedState& state);
  /// Learning rates of steps made during the last synchronization, and of all others.
  struct Rates {
    sync::policy::LocalStepRate ahead;
    sync::policy::LocalStepRate usual;
  };
  /// Recomputes the announced local steps of one device. Errors: bad_record (they do not match its
  /// intervals), those of `rows` and of the trainer.
  Result<LocalModel*> step(const std::string& id, const Announced& announced,
                           const sync::FactsSection& section, const Rates& rates, const AgreedState& state,
                           ReplayRows& rows, ReplayBatch& batch);
  /// After a synchronization of gradients or deltas; `residuals`: by device id.
  void follow_group() { devices_.clear(); }
  /// Marks the point at which the device's delta left: further local steps may overlap the synchronization.
  void depart(const std::string& id);
  /// After a round without synchronization: recomputes local steps that had left.
  void undo_departed(const AgreedState& state);
  void agreed(const AgreedState& state, bool applied, std::map<std::string, sync::Residual>& residuals);

 private:
  struct Device {
    LocalIntervals intervals;
    std::unique_ptr<LocalModel> model;
    ModelPoint departure;  ///< where its last delta left
  };
  Result<Device*> device_of(const std::string& id);
  Status make_step(LocalModel& model, const AgreedState& state, const sync::policy::LocalStepRate& rate,
                   const ReplayBatch& batch);

  const Parts parts_;
  VirtualClock clock_;
  std::map<std::string, Device> devices_;
};

}  // namespace rivulet::runtime
