#pragma once
#include <string>

#include "sync/policy/controller.h"

/// Seven rows from every device through a compressor; dense after the step compressed_steps, so that all
/// residuals have been sent.
namespace rivulet::testing {

inline constexpr std::uint64_t compressed_steps = 30;
/// Of a third of the 3600 parameters of model tally, where slices are compressed: four entries.
inline constexpr double compressed_keep = 4.0 / 1200;

inline void propose_compressed(const sync::policy::Inputs& in, sync::policy::RoundPlan& plan,
                               const std::string& compressor, std::uint64_t payload_bytes) {
  plan.next.rows.assign(in.table.size(), 7);
  plan.next.wait = std::chrono::seconds(3);
  plan.why = "compressed";
  if (in.table.facts[0].step >= compressed_steps) return;
  plan.next.way.compressor = compressor;
  plan.next.way.payload_bytes = payload_bytes;
  plan.next.way.keep_ratio = compressed_keep;
}

}  // namespace rivulet::testing
