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

/// The private copies of all devices of a recorded run: their own steps are made again from the rows that
/// they announced of each. Owner: one thread.
class ReplayModels {
 public:
  struct Parts {
    devices::Device& device;
    devices::Trainer& trainer;
    const devices::OptimizerConfig& optimizer;
  };
  explicit ReplayModels(const Parts& parts) : parts_(parts) {}

  /// The contributions of a round are movements: devices stepped apart, or own steps were left from a view
  /// that was lost.
  static bool local_steps_of(const sync::policy::Schedule& entered, const sync::FactsTable& table);

  /// What every device keeps of its own steps behind the last agreement, by its id.
  using Kept = std::map<std::string, PrivatePart>;
  [[nodiscard]] Kept kept() const;
  /// Errors: unavailable (memory).
  Status restore(const Kept& kept, const AgreedState& state);
  /// A view begins with `state`, and this device with what has this digest (0: nothing). Errors: bad_record
  /// (it is not what the rounds before have left).
  Status enter(const std::string& id, std::uint64_t digest, const AgreedState& state);
  /// Of the steps that were made while the group agreed last, and of all others.
  struct Rates {
    sync::policy::LocalStepRate ahead;
    sync::policy::LocalStepRate usual;
  };
  /// Makes the announced own steps of one device. Errors: bad_record (they do not fit its intervals), those
  /// of `rows` and of the trainer.
  Result<LocalModel*> step(const std::string& id, const Announced& announced,
                           const sync::FactsSection& section, const Rates& rates, const AgreedState& state,
                           ReplayRows& rows, ReplayBatch& batch);
  /// Behind an aggregating round: of gradients, or of movements; `residuals`: by device id.
  void follow_group() { devices_.clear(); }
  /// The delta of this device has left: it may have gone on from here before the group had agreed.
  void depart(const std::string& id);
  /// Behind a round that did not aggregate: own steps of it that had left are made again.
  void undo_departed(const AgreedState& state);
  void agreed(const AgreedState& state, bool applied, std::map<std::string, sync::Residual>& residuals);

 private:
  struct Device {
    LocalIntervals intervals;
    std::unique_ptr<LocalModel> model;
    ModelPoint departure;  ///< where its last delta left from
  };
  Result<Device*> device_of(const std::string& id);
  Status make_step(LocalModel& model, const AgreedState& state, const sync::policy::LocalStepRate& rate,
                   const ReplayBatch& batch);

  const Parts parts_;
  VirtualClock clock_;
  std::map<std::string, Device> devices_;
};

}  // namespace rivulet::runtime
