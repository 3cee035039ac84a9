#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

// ScaDLES: b = S * T, with the measured rate S and the tick T (arXiv 2301.08897, section on weighted
// aggregation; T is one second there and a key here). As a loop:
//
//        S, queue --> rows for the next round --> wait until they are there --> compute, sync ---+
//           ^                                                                                    |
//           +------------------------------------------------------------------------------------+
//
// b covers the time since the last round, not a fixed T. It counts the rows in the queue and those expected
// in the rest of the tick, after the compute time of the slowest device.

/// Rows requested from device f for the next round; 0: enter immediately.
std::uint32_t rows_for(const Facts& f, const PolicyConfig& config, double window_seconds) {
  const double expected = static_cast<double>(f.queue_rows) + f.stream_rate * window_seconds;
  const auto most = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(config.max, std::max<std::uint64_t>(f.rows_max, config.min)));
  auto rows = static_cast<std::uint32_t>(std::min(std::floor(expected + 0.5), static_cast<double>(most)));
  if (rows == 0) return 0;
  if (rows >= config.min) return rows;
  // Below the minimum, waits only if the missing rows can arrive within max_wait.
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
  // With local steps, a device makes one step per tick, compute time included. A backlog is spread over the
  // coming steps.
  const double window = local ? to_seconds(config.tick) : std::max(0.0, to_seconds(config.tick) - slowest);
  std::uint64_t total = 0;
  for (std::size_t rank = 0; rank < table.size(); ++rank) {
    Facts facts = table.facts[rank];
    facts.queue_rows /= plan.next.steps();
    plan.next.rows[rank] = rows_for(facts, config, window);
    total += plan.next.rows[rank];
  }
  // Streams too slow for a row per tick: pause instead of spinning through empty rounds.
  plan.next.rest = total == 0;
  plan.why = "batch = rate * tick";
}

/// Explains the limit that determined a device's rows.
std::string why_rows(const PolicyConfig& config, const Facts& facts, std::uint32_t asked) {
  const double tick = 1000 * to_seconds(config.tick);
  std::string text = fmt::format("{} rows waiting, {:.1f} rows/s arriving, tick of {:.{}f} ms",
                                 facts.queue_rows, facts.stream_rate, tick, tick < 10 ? 1 : 0);
  if (asked == 0) return text + ": it does not wait for rows";
  if (asked == config.max) return text + "; limited by batch.max";
  if (asked >= facts.rows_max) return text + "; limited by buffer.rows";
  return asked == config.min ? text + "; raised to batch.min" : text;
}

}  // namespace

extern const ControllerEntry batch_stream;
const ControllerEntry batch_stream{
    .role = Role::batch,
    .name = "stream",
    .help = "batch size in proportion to each device's stream rate: batch = rate * tick (ScaDLES)",
    .propose = &propose,
    .fills_ticks = true,
    .why_rows = &why_rows};

}  // namespace rivulet::sync::policy
