#pragma once
#include <array>

#include "core/metrics.h"
#include "sync/membership/membership.h"

namespace rivulet::runtime {

/// The metric handles of the train thread, resolved once.
struct TrainMetrics {
  TrainMetrics(MetricsSink& sink, bool classification);
  void enter_view(const sync::ViewSpec& spec);
  void leave_view();
  void count_ignored(const sync::membership::IgnoredRecords& so_far);

  Counter& rows_trained;
  Counter& copies_trained;
  Counter& record_bytes_trained;
  Histogram& batch_rows;
  Counter& steps_applied;
  Counter& steps_skipped;
  Counter& steps_idle;
  Counter& steps_held;
  Counter& steps_local;
  Histogram& wait;
  Histogram& compute;
  Histogram& agree;
  Histogram& total;
  Histogram& record_delay;
  Gauge& loss_last;
  Gauge& loss_average;
  Gauge& own_loss;
  Gauge* eval_score;  ///< nullptr: a regression has no accuracy
  Gauge& grad_norm;
  Gauge& learning_rate;
  Counter& dropped_nonfinite;
  Counter& nonfinite_local;
  Counter& nonfinite_agreed;
  Gauge& last_step;
  Gauge& model_parameters;
  Gauge& world;
  Gauge& rank;
  Gauge& view;
  Counter& rounds_done;
  Counter& rounds_failed;
  Counter& states_taken;
  Counter& states_failed;
  Counter& divergences;
  Counter& early_used;
  Counter& early_wasted;
  Histogram& round_exchange;
  Gauge& residual;
  Counter& residual_lost;
  std::array<Counter*, sync::membership::ignored_reasons> ignored{};  ///< by reason
  sync::membership::IgnoredRecords ignored_counted;
};

}  // namespace rivulet::runtime
