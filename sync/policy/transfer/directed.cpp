#include <algorithm>
#include <numeric>
#include <vector>

#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

// Rows that wait where they cannot be trained in time go to devices whose streams bring too few: as many as
// such a device can take on top of its own batch, and then so many of that batch that both compute the same.
// Their owner announces them.

/// More waits of it than it trains in so many steps: a backlog.
constexpr double steps_waiting = 2;

struct Device {
  std::uint32_t brings = 0;
  std::uint32_t computes = 0;
  std::uint32_t most = 0;
  std::uint64_t waits = 0;  ///< beyond what it brings
  [[nodiscard]] bool has_backlog() const { return brings > 0 && waits > steps_waiting * brings; }
};

/// Rows that go from one to the other.
std::uint32_t give(Device& from, Device& to) {
  if (!from.has_backlog() || to.has_backlog() || from.computes <= to.computes) return 0;
  const std::uint32_t lacks = from.computes - to.computes;
  const std::uint32_t room = from.most > from.brings ? from.most - from.brings : 0;
  const auto besides = static_cast<std::uint32_t>(std::min<std::uint64_t>({lacks, room, from.waits}));
  const std::uint32_t half = (lacks - besides) / 2;
  const std::uint32_t gives = std::min(besides + half, to.most > to.computes ? to.most - to.computes : 0);
  const std::uint32_t taken = std::min(besides, gives);
  from.brings += taken;
  from.waits -= taken;
  from.computes -= gives - taken;
  to.computes += gives;
  return gives;
}

void propose(const Inputs& inputs, std::span<double> /*memory*/, RoundPlan& plan) {
  if (plan.next.apart) return;  // rows move between devices that meet
  std::vector<Device> all;
  for (std::size_t rank = 0; rank < plan.next.rows.size(); ++rank) {
    const Facts& facts = inputs.table.facts[rank];
    const std::uint32_t rows = plan.next.rows[rank];
    all.push_back({rows, rows, facts.rows_max, facts.queue_rows > rows ? facts.queue_rows - rows : 0});
  }
  std::vector<std::uint32_t> givers(all.size());
  std::iota(givers.begin(), givers.end(), 0U);
  std::ranges::stable_sort(givers, [&](auto a, auto b) { return all[a].waits > all[b].waits; });
  std::uint64_t moved = 0;
  for (std::uint32_t to = 0; to < all.size(); ++to)
    for (const std::uint32_t from : givers)
      if (const std::uint32_t rows = from == to ? 0 : give(all[from], all[to]); rows > 0) {
        plan.next.moves.push_back({from, to, rows});
        plan.next.rows[from] = all[from].brings;
        moved += rows;
      }
  if (moved > 0) plan.why = std::to_string(moved) + " rows that wait go to devices that have too few";
}

}  // namespace

extern const ControllerEntry transfer_directed;
const ControllerEntry transfer_directed{
    .role = Role::transfer,
    .name = "directed",
    .help = "rows that wait too long go to devices whose streams bring few",
    .propose = &propose};

}  // namespace rivulet::sync::policy
