#pragma once
#include <array>

#include "core/metrics.h"
#include "sync/membership/membership.h"

namespace rivulet::runtime {

/// Metric handles of the train thread, looked up once at construction. Only Prometheus shows these metrics.
struct TrainMetrics {
  explicit TrainMetrics(MetricsSink& sink);
  void count_ignored(const sync::membership::IgnoredRecords& so_far);

  Counter& injected_trained;
  Histogram& batch_rows;
  Counter& steps_applied;
  Counter& steps_skipped;
  Counter& steps_idle;
  Counter& steps_deferred;
  Counter& steps_local;
  Histogram& total;
  Histogram& record_delay;
  Gauge& loss_last;
  Gauge& own_loss;
  Gauge& grad_norm;
  Gauge& learning_rate;
  Counter& nonfinite_local;
  Counter& nonfinite_agreed;
  Gauge& last_step;
  Gauge& model_parameters;
  Counter& rounds_done;
  Counter& rounds_failed;
  Counter& states_taken;
  Counter& states_failed;
  Counter& divergences;
  Histogram& round_exchange;
  Gauge& residual;
  Counter& residual_lost;
  std::array<Counter*, sync::membership::ignored_reasons> ignored{};  ///< by reason
  sync::membership::IgnoredRecords ignored_counted;
};

}  // namespace rivulet::runtime
