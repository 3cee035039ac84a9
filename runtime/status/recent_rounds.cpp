#include "runtime/status/recent_rounds.h"

#include <algorithm>
#include <utility>

namespace rivulet::runtime {
namespace {

class ShownLog final : public DecisionLog {
 public:
  ShownLog(std::unique_ptr<DecisionLog> log, RecentRounds& board, MetricsSink& metrics)
      : log_(std::move(log)),
        board_(board),
        weight_(metrics.gauge("collective_weight_ratio")),
        spare_(metrics.gauge("collective_spare_seconds")),
        rounds_last_(metrics.counter("collective_rounds_last_total")) {}
  void enter_view(const ViewRecord& view) override {
    rank_ = view.rank;
    board_.enter_view(view);
    log_->enter_view(view);
  }
  void write(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table,
             const sync::policy::RoundPlan& plan) override {
    board_.add(view, round, table, plan);
    measure(table, plan);
    log_->write(view, round, table, plan);
  }
  void finish_round(const sync::policy::PolicyState& state) override { log_->finish_round(state); }

 private:
  /// The others waited for the device that took longest to collect its rows and to compute.
  void measure(const sync::FactsTable& table, const sync::policy::RoundPlan& plan) {
    double longest = 0;
    for (std::size_t rank = 0; rank < table.size(); ++rank)
      longest = std::max(longest, ready_seconds(table, rank));
    const double spare = longest - ready_seconds(table, rank_);
    spare_.set(spare);
    if (table.size() > 1 && spare <= 0) rounds_last_.add(1);
    weight_.set(rank_ < plan.now.weights.size() ? plan.now.weights[rank_] : 0);
  }

  std::unique_ptr<DecisionLog> log_;
  RecentRounds& board_;
  Gauge& weight_;
  Gauge& spare_;
  Counter& rounds_last_;
  std::size_t rank_ = 0;
};

}  // namespace

void RecentRounds::enter_view(const ViewRecord& view) {
  entered_ = view;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) take_view();
}

void RecentRounds::take_view() {
  if (!entered_) return;
  view_ = std::exchange(entered_, std::nullopt);
  rounds_.clear();
  oldest_ = 0;
  const std::size_t round_bytes = sizeof(RoundRecord) + view_->members.size() * sizeof(sync::Facts);
  rounds_max_ = std::clamp(bytes_kept / round_bytes, rounds_least, rounds_most);
}

void RecentRounds::add(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table,
                       const sync::policy::RoundPlan& plan) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) {
    ++left_out_;
    return;
  }
  take_view();
  left_out_shown_ = left_out_;
  if (rounds_.size() < rounds_max_) {
    rounds_.push_back({view, round, table, plan, 0});
    return;
  }
  RoundRecord& slot = rounds_[oldest_];  // reuses its memory
  slot.view = view;
  slot.round = round;
  slot.table = table;
  slot.plan = plan;
  oldest_ = (oldest_ + 1) % rounds_.size();
}

RecentRounds::Shown RecentRounds::read() const {
  Shown shown;
  const std::lock_guard lock(mutex_);
  shown.view = view_;
  shown.left_out = left_out_shown_;
  shown.rounds.reserve(rounds_.size());
  for (std::size_t i = 0; i < rounds_.size(); ++i)
    shown.rounds.push_back(rounds_[(oldest_ + i) % rounds_.size()]);
  return shown;
}

std::unique_ptr<DecisionLog> show_on_board(std::unique_ptr<DecisionLog> log, RecentRounds& board,
                                           MetricsSink& metrics) {
  return std::make_unique<ShownLog>(std::move(log), board, metrics);
}

}  // namespace rivulet::runtime
