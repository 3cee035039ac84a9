#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/gradient_view.h"
#include "core/metrics.h"
#include "core/result.h"
#include "core/row.h"
#include "sync/collective/aggregation.h"
#include "sync/message/facts.h"
#include "sync/message/plan.h"
#include "sync/policy/controller.h"
#include "sync/residual/residual.h"
#include "sync/round/facts_exchange.h"
#include "sync/round/parcels.h"
#include "sync/round/round.h"
#include "sync/round/speculation.h"
#include "sync/transport/transport.h"

namespace rivulet::sync {

/// What the catalogs offer; wirings pass the built-in ones, tests pass more.
struct SyncCatalog {
  std::span<const policy::ControllerEntry* const> controllers;
  std::span<const CompressorEntry* const> compressors;
  std::span<const AggregationEntry* const> aggregations;
};
SyncCatalog builtin_sync_catalog();

struct SessionConfig {
  policy::PolicyConfig policy;
  RowShape row_shape;             ///< for copies of rows
  std::uint32_t rows_max = 1024;  ///< of a batch
  ContributionShape shape;
  Settings settings;                 ///< of the compressors' keys
  double movement_per_gradient = 1;  ///< for residuals: how far a gradient moves parameters in the end
  bool speculate = true;  ///< contributions may leave with the facts; the same on all devices of the group
};

/// Of copies of rows, from one device to another with one round's facts: of any row one fits.
[[nodiscard]] inline std::size_t copies_bytes_max(const RowShape& shape) noexcept {
  const std::size_t row = (shape.columns() + shape.targets) * sizeof(float);
  return std::max(std::size_t{96} * 1024, row + row / 64 + 4096);  // deflating may make it longer
}

/// All of one round's agreement behind begin/poll: facts, plan, payload. Where the plan is as_expected
/// (sync/round/speculation.h) the payload leaves with the facts; the calls stay the same. Lives inside a
/// View.
///
///   begin_facts -> poll -> plan()  ->  [begin_payload -> poll -> agreed()]  ->  finish(applied)
///
/// Nothing waits but wait(). The first `failed` is final: error() says why, what begin_* was given is
/// untouched, destroy the session and its transport. Owner: the train thread.
class SyncSession {
 public:
  /// `residual` is lent: finish() says whether what was sent of it is part of the agreed state; if the
  /// session dies before, it stays staged. `memory`: what the agreed state has of the controllers.
  SyncSession(Transport& transport, const ViewSpec& view, const SessionConfig& config,
              const SyncCatalog& catalog, Residual& residual, GradientView agreed_scratch,
              std::vector<policy::ControllerMemory> memory = {});
  ~SyncSession();
  SyncSession(const SyncSession&) = delete;
  SyncSession& operator=(const SyncSession&) = delete;

  /// Before begin_facts(), where the schedule in force has this rank send copies (Schedule::copies): for each
  /// rank some bytes, of at most copies_bytes_max(); of the own one nothing is used.
  void bring_copies(std::vector<std::vector<std::byte>> for_rank);
  /// Those that came with the facts, after them and until the next begin_facts().
  [[nodiscard]] std::vector<ParcelExchange::Received> copies() const;

  /// begin_facts() wants to see the contribution of those who have rows.
  [[nodiscard]] bool speculates() const;
  /// What `rows` of this rank will weigh in the agreed sum, if the others bring what they were asked for.
  [[nodiscard]] double expected_weight(std::uint32_t rows) const;
  /// view, round, rank and plan_hash of `facts` are filled in here, and measurements that are missing, with
  /// 0. `mine` as for begin_payload(); looked at only if speculates() and facts.rows > 0.
  void begin_facts(Facts facts, const FactsSection& section, const GradientView& mine,
                   Peers peers = Peers::due);
  /// From now on a peer that is silent counts as one that makes no progress.
  void peers_are_due();
  /// A peer has entered the current round already (its facts are here). Never waits.
  [[nodiscard]] bool peer_entered();
  /// ... and asks the others to come before the schedule does. Never waits.
  [[nodiscard]] bool peer_called();

  /// Of this round, after the facts.
  [[nodiscard]] SpeculationOutcome early() const;
  /// Only when plan().now.mode is gradients or delta. `mine` [P + B], host memory, what begin_facts() was
  /// given if it was given something; ignored at weight 0.
  void begin_payload(const GradientView& mine);
  [[nodiscard]] const GradientView& agreed() const;

  Progress poll();
  /// While poll() is pending: as Transport::wait() for what the round needs next.
  bool wait();
  /// After the facts this round, before them the last one.
  [[nodiscard]] const std::shared_ptr<const Round>& last_round() const;
  [[nodiscard]] const policy::RoundPlan& plan() const { return last_round()->plan(); }
  [[nodiscard]] const FactsTable& table() const { return last_round()->table; }
  /// What the next round's plan starts from, besides its facts.
  [[nodiscard]] const policy::PolicyState& policy_state() const { return last_round()->state; }
  /// Before the first round: rounds go on where those of another session of the same view ended. For replays.
  void resume_from(const policy::PolicyState& state);
  /// What its controllers want in Facts::measurements, in their order.
  [[nodiscard]] std::vector<policy::FactField> fact_fields() const;
  [[nodiscard]] const policy::Controllers& controllers() const;
  [[nodiscard]] std::uint64_t round() const { return policy_state().round; }
  /// Ends the round: the agreed sum was `applied`, or nothing of it was.
  void finish(bool applied);
  [[nodiscard]] const Error& error() const;

  /// The last exchange of a clean end: returns when everybody is there, so that nobody's close cuts a peer
  /// off.
  void begin_shutdown_barrier();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rivulet::sync
