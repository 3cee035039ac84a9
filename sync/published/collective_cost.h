#pragma once
#include <cstddef>
#include <string_view>

#include "sync/policy/controller.h"

/// Cost model of the published collectives (Flexible communication: Tyagi and Swany, BigData 2023, table I
/// and equations 4 to 6). Pure. Uses only exact operations.
namespace rivulet::sync::policy {

/// Seconds per message, independent of its size, and seconds per byte.
struct LinkCost {
  double message = 0;
  double byte = 0;
};
/// Bytes that one device sends in a round.
struct SparseBytes {
  double values = 0;
  double positions = 0;
};

/// Each device sends all its entries to every other device.
double gather_seconds(const LinkCost& link, std::size_t world, const SparseBytes& bytes);
/// One device broadcasts its positions. Then the values at these positions are summed by a ring or a tree.
double shared_ring_seconds(const LinkCost& link, std::size_t world, const SparseBytes& bytes);
double shared_tree_seconds(const LinkCost& link, std::size_t world, const SparseBytes& bytes);
/// A dense sum by a ring or a tree.
double ring_seconds(const LinkCost& link, std::size_t world, double bytes);
double tree_seconds(const LinkCost& link, std::size_t world, double bytes);

/// First fact fields of a controller that calls kept_ratio(), for ControllerEntry::fact_fields.
inline constexpr FactField kept_fields[] = {
    {"kept_norm", "norm of its residual"},
    {"gradient_norm", "norm of its weighted gradient, without residual"},
};
/// Maximum ratio of a device's residual to its gradient; 0 if no device contributes.
double kept_ratio(const Inputs& inputs);

/// Detects residuals too large for shared positions: above a limit, until the ratio has halved. `memory`
/// holds the mean ratio, negative while too large; 0 before the first ratio.
class KeptLimit {
 public:
  KeptLimit(double limit, double& memory) : limit_(limit), memory_(memory) {}
  void add(double ratio);
  [[nodiscard]] bool exceeded() const { return memory_ < 0; }
  [[nodiscard]] double ratio() const { return exceeded() ? -memory_ : memory_; }

 private:
  double limit_;  ///< 0: no limit
  double& memory_;
};
inline constexpr Key kept_key{
    .name = "sync.kept_max",
    .text = "100",
    .help =
        "of collectives shared_index and learned: maximum ratio of residual norm to gradient norm; above it, "
        "devices use gather until the ratio has halved; 0: no limit",
    .least = 0,
    .most = 1e9};

/// Sets the chosen collective for the next round, or for this one if it is gated.
void use_collective(std::string_view name, RoundPlan& plan);

}  // namespace rivulet::sync::policy
