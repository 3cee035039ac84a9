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

/// Catalogs of a session. Production code passes the built-in catalogs; tests add entries.
struct SyncCatalog {
  std::span<const policy::ControllerEntry* const> controllers;
  std::span<const CompressorEntry* const> compressors;
  std::span<const AggregationEntry* const> aggregations;
};
SyncCatalog builtin_sync_catalog();

struct SessionConfig {
  policy::PolicyConfig policy;
  RowShape row_shape;             ///< shape of injected rows
  std::uint32_t rows_max = 1024;  ///< maximum rows of a batch
  ContributionShape shape;
  Settings settings;              ///< values of the compressors' keys
  double delta_per_gradient = 1;  ///< for residuals: total change of parameters per gradient
  bool speculate = true;  ///< contributions may be sent with the facts; equal on all devices of the group
};

/// Maximum bytes of injected rows from one device to another per round. Any single row fits.
[[nodiscard]] inline std::size_t injected_bytes_max(const RowShape& shape) noexcept {
  const std::size_t row = (shape.columns() + shape.targets) * sizeof(float);
  return std::max(std::size_t{96} * 1024, row + row / 64 + 4096);  // deflating may make it longer
}

/// Rounds of synchronization, each with facts, plan and payload. If the plan is predictable
/// (sync/round/speculation.h), the payload is sent with the facts; the calls are the same. Part of a View.
///
///   begin_facts -> poll -> plan()  ->  [begin_payload -> poll -> agreed()]  ->  finish(applied)
///
/// Only wait() waits. The first `failed` is final: error() has the reason, arguments of begin_* are
/// unchanged, and session and transport must be destroyed. Owner: the train thread.
class SyncSession {
 public:
  /// Borrows `residual`: finish() commits or drops its sent part, which stays staged if the session is
  /// destroyed before. `memory`: the controllers' memory of the agreed state.
  SyncSession(Transport& transport, const ViewSpec& view, const SessionConfig& config,
              const SyncCatalog& catalog, Residual& residual, GradientView agreed_scratch,
              std::vector<policy::ControllerMemory> memory = {});
  ~SyncSession();
  SyncSession(const SyncSession&) = delete;
  SyncSession& operator=(const SyncSession&) = delete;

  /// Call before begin_facts(), if the current schedule has this rank send rows (Schedule::injection).
  /// `for_rank`: up to injected_bytes_max() bytes for each rank; the entry of this rank is ignored.
  void send_rows(std::vector<std::vector<std::byte>> for_rank);
  /// Injected rows received with the facts, until the next begin_facts().
  [[nodiscard]] std::vector<ParcelExchange::Received> injected_rows() const;

  /// Whether begin_facts() needs the contribution of a device with rows.
  [[nodiscard]] bool speculates() const;
  /// Predicted weight of `rows` of this rank in the agreed sum, if others contribute as requested.
  [[nodiscard]] double expected_weight(std::uint32_t rows) const;
  /// Sets view, round, rank and plan_hash of `facts`, and missing measurements to 0. `mine` as for
  /// begin_payload(); used only if speculates() and facts.rows > 0.
  void begin_facts(Facts facts, const FactsSection& section, const GradientView& mine,
                   Peers peers = Peers::due);
  /// From this call on, a silent peer counts as not making progress.
  void peers_are_due();
  /// Whether a peer's facts of the current round have arrived. Never waits.
  [[nodiscard]] bool peer_entered();
  /// Whether a peer requests an early synchronization. Never waits.
  [[nodiscard]] bool peer_requested_sync();

  /// Outcome of this round's early contributions. Call after the facts.
  [[nodiscard]] SpeculationOutcome early() const;
  /// Call only if plan().now.mode is gradients or delta. `mine` [P + B], host memory: the same as for
  /// begin_facts(), if it was given one; ignored at weight 0.
  void begin_payload(const GradientView& mine);
  [[nodiscard]] const GradientView& agreed() const;

  Progress poll();
  /// While poll() is pending: as Transport::wait(), for the next missing part of the round.
  bool wait();
  /// After the facts, this round; before them, the last round.
  [[nodiscard]] const std::shared_ptr<const Round>& last_round() const;
  [[nodiscard]] const policy::RoundPlan& plan() const { return last_round()->plan(); }
  [[nodiscard]] const FactsTable& table() const { return last_round()->table; }
  /// Input of the next round's plan, apart from its facts.
  [[nodiscard]] const policy::PolicyState& policy_state() const { return last_round()->state; }
  /// Call before the first round. Continues after another session's rounds of the same view. For replays.
  void resume_from(const policy::PolicyState& state);
  /// Measurements that the controllers request in Facts::measurements, in order.
  [[nodiscard]] std::vector<policy::FactField> fact_fields() const;
  [[nodiscard]] const policy::Controllers& controllers() const;
  [[nodiscard]] std::uint64_t round() const { return policy_state().round; }
  /// Ends the round. `applied`: the whole agreed sum was applied; otherwise nothing was.
  void finish(bool applied);
  [[nodiscard]] const Error& error() const;

  /// Begins the last exchange of a clean shutdown. It completes when all devices have arrived, so that no
  /// close interrupts a peer.
  void begin_shutdown_barrier();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rivulet::sync
