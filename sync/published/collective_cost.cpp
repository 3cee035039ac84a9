#include "sync/published/collective_cost.h"

#include <algorithm>

#include "sync/policy/coherence.h"

namespace rivulet::sync::policy {

double gather_seconds(const LinkCost& link, std::size_t world, const SparseBytes& bytes) {
  const auto n = static_cast<double>(world);
  return link.message * log2_of(n) + (n - 1) * (bytes.values + bytes.positions) * link.byte;
}

double shared_ring_seconds(const LinkCost& link, std::size_t world, const SparseBytes& bytes) {
  const double depth = log2_of(static_cast<double>(world));
  return ring_seconds(link, world, bytes.values) + depth * (link.message + bytes.positions * link.byte);
}

double shared_tree_seconds(const LinkCost& link, std::size_t world, const SparseBytes& bytes) {
  const double depth = log2_of(static_cast<double>(world));
  return tree_seconds(link, world, bytes.values) + depth * (link.message + bytes.positions * link.byte);
}

double ring_seconds(const LinkCost& link, std::size_t world, double bytes) {
  const auto n = static_cast<double>(world);
  return 2 * (n - 1) * (link.message + bytes / n * link.byte);
}

double tree_seconds(const LinkCost& link, std::size_t world, double bytes) {
  return 2 * log2_of(static_cast<double>(world)) * (link.message + bytes * link.byte);
}

double kept_ratio(const Inputs& inputs) {
  double most = 0;
  for (const Facts& f : inputs.table.facts) {
    const double kept = std::max(0.0, finite(f.measurements[inputs.measured]));
    const double own = std::max(0.0, finite(f.measurements[inputs.measured + 1]));
    if (own > 0) most = std::max(most, finite(kept / own));
  }
  return most;
}

void KeptLimit::add(double ratio) {
  if (ratio <= 0) return;
  constexpr double newest = 0.1;
  const double mean = this->ratio() == 0 ? ratio : this->ratio() + newest * (ratio - this->ratio());
  const bool too_much = limit_ > 0 && mean > (exceeded() ? limit_ / 2 : limit_);
  memory_ = too_much ? -mean : mean;
}

void use_collective(std::string_view name, RoundPlan& plan) {
  plan.next.way.collective = name;
  if (plan.now.way) plan.now.way->collective = name;
}

}  // namespace rivulet::sync::policy
