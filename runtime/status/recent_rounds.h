#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/metrics.h"
#include "runtime/decisions/decision_log.h"

namespace rivulet::runtime {

/// The last rounds as this device recorded them, for pages: each member's facts, and the plan. Written by the
/// train thread, which never waits for a reader: it omits a round that ends during a read and counts the
/// omission. Keeps as many rounds as fit into bytes_kept, but no fewer than rounds_least.
class RecentRounds {
 public:
  static constexpr std::size_t bytes_kept = std::size_t{64} * 1024;
  static constexpr std::size_t rounds_least = 3;  ///< explaining a round requires both neighbours
  static constexpr std::size_t rounds_most = 16;

  // --- train thread ---
  void enter_view(const ViewRecord& view);
  void add(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table,
           const sync::policy::RoundPlan& plan);

  // --- any thread ---
  struct Shown {
    std::optional<ViewRecord> view;   ///< none before the first view
    std::vector<RoundRecord> rounds;  ///< rounds of that view, oldest first; may have gaps
    std::uint64_t left_out = 0;       ///< rounds that ended during a read
  };
  [[nodiscard]] Shown read() const;

 private:
  void take_view();

  mutable std::mutex mutex_;
  // shared, under mutex_
  std::optional<ViewRecord> view_;
  std::vector<RoundRecord> rounds_;  ///< ring buffer: the oldest is at oldest_ when full
  std::size_t oldest_ = 0;
  std::size_t rounds_max_ = rounds_least;
  std::uint64_t left_out_shown_ = 0;
  // train thread
  std::optional<ViewRecord> entered_;  ///< not published yet
  std::uint64_t left_out_ = 0;
};

/// Wraps a decision log: publishes every round to `board`, measures this device's part in it, and forwards it
/// to `log`.
std::unique_ptr<DecisionLog> show_on_board(std::unique_ptr<DecisionLog> log, RecentRounds& board,
                                           MetricsSink& metrics);

}  // namespace rivulet::runtime
