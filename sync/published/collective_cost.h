#pragma once
#include <cstddef>
#include <string_view>

#include "sync/policy/controller.h"

/// Which of the published collectives is the fastest on a link, as Flexible communication reckons (Tyagi and
/// Swany, BigData 2023, table I and equations 4 to 6). Pure, by exact operations alone.
namespace rivulet::sync::policy {

/// Of a message: seconds that each takes whatever its size, and seconds of each byte.
struct LinkCost {
  double message = 0;
  double byte = 0;
};
/// Bytes that one device has to send in a round.
struct SparseBytes {
  double values = 0;
  double positions = 0;
};

/// Everybody's entries to everybody.
double gather_seconds(const LinkCost& link, std::size_t world, const SparseBytes& bytes);
/// One device's positions to all, then a sum of the values there: by a ring, or up and down a tree.
double shared_ring_seconds(const LinkCost& link, std::size_t world, const SparseBytes& bytes);
double shared_tree_seconds(const LinkCost& link, std::size_t world, const SparseBytes& bytes);
/// A dense sum by a ring, or up and down a tree.
double ring_seconds(const LinkCost& link, std::size_t world, double bytes);
double tree_seconds(const LinkCost& link, std::size_t world, double bytes);

/// For ControllerEntry::fact_fields of a controller that asks kept_ratio(), first among them.
inline constexpr FactField kept_fields[] = {
    {"kept_norm", "of what it kept of earlier rounds"},
    {"gradient_norm", "of its weighted gradient alone"},
};
/// The largest, over devices, of what a device has kept to what it brings now; 0 if nobody brings anything.
double kept_ratio(const Inputs& inputs);

/// Whether devices keep too much for one of them to say what all send: from a limit on, until it is less than
/// half of that. On one number of memory: 0, or the mean ratio, below 0 while it is too much.
class KeptLimit {
 public:
  KeptLimit(double limit, double& memory) : limit_(limit), memory_(memory) {}
  void add(double ratio);
  [[nodiscard]] bool exceeded() const { return memory_ < 0; }
  [[nodiscard]] double ratio() const { return exceeded() ? -memory_ : memory_; }

 private:
  double limit_;  ///< 0: none
  double& memory_;
};
inline constexpr Key kept_key{.name = "sync.kept_max",
                              .text = "100",
                              .help =
                                  "of collectives shared_index and learned: what a device has kept, in "
                                  "contributions, from which they gather for a while; 0: never",
                              .least = 0,
                              .most = 1e9};

/// The collective that was chosen: for the next round, or for this one if that is gated.
void use_collective(std::string_view name, RoundPlan& plan);

}  // namespace rivulet::sync::policy
