#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "core/digest.h"
#include "core/rng.h"
#include "runtime/decisions/decision_log.h"
#include "sync/policy/arbiter.h"
#include "tests/support/members.h"

/// Random decisions of three devices, for tests of the decision log.
namespace rivulet::testing {

inline sync::policy::Controllers stream_controllers() {
  return sync::policy::controllers_of({}, sync::policy::builtin_controllers()).value();
}

/// A realistic facts table of three devices; values have all their digits.
inline sync::FactsTable drawn_table(Rng& rng, std::uint64_t step) {
  sync::FactsTable table;
  table.facts.resize(3);
  table.sections.resize(3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    sync::Facts& f = table.facts[rank];
    f.rank = rank;
    f.step = step;
    f.agreed_rows = 100 * step;
    f.stop_at_rows = 2000;
    f.rows = static_cast<std::uint32_t>(rng.below(40));
    f.stream_rate = 1000 * rng.uniform();
    f.queue_rows = rng.below(50);
    f.compute_seconds = 0.05 * rng.uniform();
    f.rows_max = 1024;
    f.flags = rng.below(8) == 0 ? sync::flag_incomplete : 0U;
  }
  return table;
}

inline runtime::ViewRecord view_of_three(std::uint64_t number) {
  runtime::ViewRecord view;
  view.number = number;
  view.token = 40 + number;
  view.members = {"a", "b", "c"};
  view.rank = 1;
  view.policy.contribution_bytes = 4096;
  view.state = sync::policy::first_state(testing::members(3), view.policy, stream_controllers(), {}, number);
  return view;
}

/// Replaces `from` by `to` and updates the checksum, as a careful forger does.
inline std::string resealed(std::string line, const std::string& from, const std::string& to) {
  line.resize(line.size() - std::min<std::size_t>(line.size(), 26));
  line += '}';
  if (const auto at = from.empty() ? std::string::npos : line.find(from); at != std::string::npos)
    line.replace(at, from.size(), to);
  const auto sum = digest_of(std::as_bytes(std::span(line))).hex().substr(16);
  line.pop_back();
  return line + ",\"sum\":\"" + sum + "\"}";
}

/// Updates the digest of the last round in all later lines, as a thorough forger does. `last`: digest of the
/// round before; nullopt for the changed round itself.
inline std::uint64_t bear_witness(runtime::RoundRecord& round, std::optional<std::uint64_t> last) {
  if (last)
    for (auto& facts : round.table.facts) facts.plan_hash = *last;
  return round.plan_hash = sync::policy::hash_of(round.plan, hash_of(round.table));
}

inline runtime::RoundRecord round_in(const std::string& line) {
  auto record = runtime::parse_decision_line(line);
  REQUIRE_MESSAGE(record, record.error().message);
  return std::get<runtime::RoundRecord>(record.value());
}

}  // namespace rivulet::testing
