#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/metrics.h"
#include "runtime/decisions/decision_log.h"

namespace rivulet::runtime {

/// The group's last rounds as this device saw them, for pages: what each member measured, and the plan that
/// all made of it. Written by the train thread, which never waits for a reader: a round that ends while one
/// copies is left out and counted. Bounded: as many rounds as fit into bytes_kept, at least rounds_least.
class RecentRounds {
 public:
  static constexpr std::size_t bytes_kept = std::size_t{64} * 1024;
  static constexpr std::size_t rounds_least = 3;  ///< one with its neighbours can be explained
  static constexpr std::size_t rounds_most = 16;

  // --- train thread ---
  void enter_view(const ViewRecord& view);
  void add(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table,
           const sync::policy::RoundPlan& plan);

  // --- any thread ---
  struct Shown {
    std::optional<ViewRecord> view;   ///< none: this device was in no view yet
    std::vector<RoundRecord> rounds;  ///< of that view, oldest first; a number may be missing
    std::uint64_t left_out = 0;       ///< rounds that came while somebody read
  };
  [[nodiscard]] Shown read() const;

 private:
  void take_view();

  mutable std::mutex mutex_;
  // shared, under mutex_
  std::optional<ViewRecord> view_;
  std::vector<RoundRecord> rounds_;  ///< a ring: the oldest is at oldest_ when it is full
  std::size_t oldest_ = 0;
  std::size_t rounds_max_ = rounds_least;
  std::uint64_t left_out_shown_ = 0;
  // train thread
  std::optional<ViewRecord> entered_;  ///< not shown yet
  std::uint64_t left_out_ = 0;
};

/// Shows every round on the board, measures this device's part in it, and hands it on.
std::unique_ptr<DecisionLog> show_on_board(std::unique_ptr<DecisionLog> log, RecentRounds& board,
                                           MetricsSink& metrics);

}  // namespace rivulet::runtime
