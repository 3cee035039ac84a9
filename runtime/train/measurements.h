#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/train/feature_skew.h"
#include "runtime/train/local_model.h"
#include "runtime/train/norm_watch.h"
#include "sync/coding/gains.h"
#include "sync/controllers/linear_fit.h"
#include "sync/controllers/skew.h"
#include "sync/message/facts.h"
#include "sync/policy/controller.h"
#include "sync/transport/transport.h"

namespace rivulet::runtime {

/// Measurements that controllers request in addition to the common facts (ControllerEntry::fact_fields), by
/// name. Unknown names give 0. Owner: the train thread.
class Measurements {
 public:
  /// `speed_hint`: configured speed of this device.
  explicit Measurements(double speed_hint) : speed_hint_(speed_hint) {}
  /// Call at the start of a view.
  void begin(std::vector<sync::policy::FactField> requested);
  /// True if a controller requests the sketches of LocalModel, which cost a pass over each local gradient.
  [[nodiscard]] bool requests_sketches() const noexcept { return requests_sketches_; }
  /// True if a controller requests the compression gain of the contribution.
  [[nodiscard]] bool requests_gains() const noexcept { return requests_gains_; }
  /// True if a controller requests only the norm of the contribution.
  [[nodiscard]] bool requests_norm() const noexcept { return requests_norm_; }

  /// State of the device when it enters a round.
  struct Entering {
    const LocalModel& model;
    std::uint64_t record_bytes = 0;  ///< bytes of the records in this round
    double local_seconds = 0;        ///< time since the last round ended
    double stepping_seconds = 0;     ///< time spent on local steps
    std::uint64_t bytes_sent = 0;    ///< bytes sent through the transport in this view
    sync::Gains gains;               ///< gains of the contribution; 0 without one
    double kept_norm = 0;            ///< norm of the residual
  };
  std::vector<float> take(const Entering& now);
  /// Call when a step of `rows` rows was computed. `seconds`: compute time only.
  void stepped(std::size_t rows, double seconds);
  /// Call when the first `own` rows of a batch are trained. Their targets are labels.
  void trained(const BatchView& batch, std::size_t own);
  /// Call when `bytes` bytes of injected rows were sent with the facts.
  void copied(std::uint64_t bytes) { copied_bytes_ += bytes; }
  [[nodiscard]] bool requests_labels() const noexcept { return requests_labels_; }
  [[nodiscard]] bool requests_feature_skew() const noexcept { return requests_feature_skew_; }
  /// Call when the round is deferred. Adds its labels to those of the next round.
  void round_deferred();
  /// Returns the watch of changes in local gradients.
  [[nodiscard]] NormWatch& norms() noexcept { return norms_; }
  [[nodiscard]] const NormWatch& norms() const noexcept { return norms_; }
  /// Returns the distance of this device's features from those of all devices.
  [[nodiscard]] FeatureSkew& skew() noexcept { return skew_; }
  /// Call when the round has ended, `sync_seconds` after this device entered it.
  void ended(const sync::FactsTable& table, std::uint32_t rank, double sync_seconds);

 private:
  [[nodiscard]] sync::policy::LinearFit fit() {
    return {compute_, {.kept = 0.98, .fixed_part = 0.25, .doubt = 0.02}};
  }

  const double speed_hint_;
  std::vector<sync::policy::FactField> requested_;
  sync::policy::LinearFit::Memory compute_{};  ///< seconds of a step by its rows
  bool warm_ = false;  ///< skips the first step of a process, which takes longer than others
  bool requests_sketches_ = false;
  bool requests_gains_ = false;
  bool requests_norm_ = false;
  std::uint64_t bytes_sent_ = 0;  ///< bytes sent before the last facts
  double exchange_seconds_ = 0;
  bool requests_labels_ = false;
  bool requests_feature_skew_ = false;
  using Labels = std::array<float, sync::policy::label_bins>;
  Labels labels_{};                 ///< rows by label since take()
  Labels labels_taken_{};           ///< labels returned by the last take()
  std::uint64_t copied_bytes_ = 0;  ///< bytes of injected rows sent since take()
  NormWatch norms_;
  FeatureSkew skew_;
};

}  // namespace rivulet::runtime
