#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sync/message/plan.h"
#include "sync/policy/controller.h"

/// Pure: uses no clock, socket, tensor or own rank. Every device computes the same plan from the same table,
/// and a replay of a recorded table gives that plan again.
namespace rivulet::sync::policy {

/// Makes the plan: calls the controllers in the order of their roles and makes their proposals consistent.
/// Only reads its arguments, except `state`, which it advances to the next round.
RoundPlan plan(const FactsTable& table, const PolicyConfig& config, const Controllers& controllers,
               PolicyState& state);

/// The state before the first round of a view: no device has rows yet, and all enter immediately to measure
/// rates. `members`: device ids by rank. `memory`: the agreed memory of the controllers, possibly from a
/// view with different members; a device's values move to its new rank. `view`: number of the view.
PolicyState first_state(std::span<const std::string> members, const PolicyConfig& config,
                        const Controllers& controllers, std::vector<ControllerMemory> memory = {},
                        std::uint64_t view = 0);

/// Devices whose states differ.
struct Disagreement {
  std::string text;  ///< one sentence that names the minority if there is one, else both sides; empty: none
  std::vector<std::uint32_t> minority;  ///< ranks whose digest differs from that of more than half
};
/// Compares the digests of a table. `ids`: device ids by rank.
Disagreement digest_disagreement(const FactsTable& table, std::span<const std::string> ids);

}  // namespace rivulet::sync::policy
