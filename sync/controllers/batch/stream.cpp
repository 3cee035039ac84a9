#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

// ScaDLES: b = S * T, with the measured rate S and the tick T (arXiv 2301.08897, section on weighted
// aggregation; T is one second there and a knob here). Written as a loop:
//
//        S, queue --> rows for the next round --> wait until they are there --> compute, agree --+
//           ^                                                                                    |
//           +------------------------------------------------------------------------------------+
//
// b covers the time since the last round, not a fixed T: what already waits counts, and the rows expected to
// arrive are those of the rest of the tick, after the slowest device's compute time.

/// Rows device f should bring to the next round; 0 = enter at once.
std::uint32_t rows_for(const Facts& f, const PolicyConfig& config, double window_seconds) {
  const double expected = static_cast<double>(f.queue_rows) + f.stream_rate * window_seconds;
  const auto most = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(config.max, std::max<std::uint64_t>(f.rows_max, config.min)));
  auto rows = static_cast<std::uint32_t>(std::min(std::floor(expected + 0.5), static_cast<double>(most)));
  if (rows == 0) return 0;
  if (rows >= config.min) return rows;
  // Fewer than the minimum: worth waiting for only if the rest can come before max_wait.
  const double missing = static_cast<double>(config.min) - static_cast<double>(f.queue_rows);
  const bool reachable = f.stream_rate * to_seconds(config.max_wait) >= missing;
  return reachable ? config.min : 0;
}

void propose(const Inputs& inputs, std::span<double>, RoundPlan& plan) {
  const FactsTable& table = inputs.table;
  const PolicyConfig& config = inputs.config;
  double slowest = 0;
  for (const auto& f : table.facts) slowest = std::max(slowest, double{f.compute_seconds});
  const bool local = plan.next.local.has_value();
  // Who waits for nobody steps once a tick, its computing included; a backlog is spread over the steps to
  // come.
  const double window = local ? to_seconds(config.tick) : std::max(0.0, to_seconds(config.tick) - slowest);
  std::uint64_t total = 0;
  for (std::size_t rank = 0; rank < table.size(); ++rank) {
    Facts facts = table.facts[rank];
    facts.queue_rows /= plan.next.steps();
    plan.next.rows[rank] = rows_for(facts, config, window);
    total += plan.next.rows[rank];
  }
  // Streams too slow for a row per tick: nobody should spin through empty rounds.
  plan.next.rest = total == 0;
  plan.why = "batch = rate * tick";
}

/// Which of the numbers bounds a device's rows.
std::string why_rows(const PolicyConfig& config, const Facts& facts, std::uint32_t asked) {
  const double tick = 1000 * to_seconds(config.tick);
  std::string text = fmt::format("{} waiting, and {:.1f} rows/s in a tick of {:.{}f} ms", facts.queue_rows,
                                 facts.stream_rate, tick, tick < 10 ? 1 : 0);
  if (asked == 0) return text + ": it need not wait for any";
  if (asked == config.max) return text + "; batch.max allows no more";
  if (asked >= facts.rows_max) return text + "; its memory allows no more";
  return asked == config.min ? text + "; batch.min is the least" : text;
}

}  // namespace

extern const ControllerEntry batch_stream;
const ControllerEntry batch_stream{.role = Role::batch,
                                   .name = "stream",
                                   .help = "rows follow each device's stream: b = rate * tick (ScaDLES)",
                                   .propose = &propose,
                                   .fills_ticks = true,
                                   .why_rows = &why_rows};

}  // namespace rivulet::sync::policy
