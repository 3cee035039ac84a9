#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sync/message/plan.h"
#include "sync/policy/controller.h"

/// Pure: numbers in, numbers out. No clock, socket, tensor or own rank here, so every device computes the
/// same plan from the same table, and a recorded table gives the same plan again.
namespace rivulet::sync::policy {

/// The one place where a plan is made: asks the controllers in the order of their roles, and what they
/// propose is checked as a whole. Reads its arguments only; advances `state` to what the next round's call
/// needs.
RoundPlan plan(const FactsTable& table, const PolicyConfig& config, const Controllers& controllers,
               PolicyState& state);

/// The state before any round of a view: nobody has rows yet, everyone enters at once so that rates get
/// known. `members`: ids of its devices, by rank. `memory`: what the agreed state has of the controllers,
/// which may be of a view of other members: what is remembered of a device goes where it is. `view`: its
/// number.
PolicyState first_state(std::span<const std::string> members, const PolicyConfig& config,
                        const Controllers& controllers, std::vector<ControllerMemory> memory = {},
                        std::uint64_t view = 0);

/// Compares the digests of a table. Empty = equal (or none carried). Otherwise one sentence that names the
/// minority when world >= 3, and both sides otherwise. `ids` are the device ids by rank.
std::string digest_disagreement(const FactsTable& table, std::span<const std::string> ids);

}  // namespace rivulet::sync::policy
