// One line of a decision log: an accepted one has exactly the bytes that a device writes, and its plan can be
// recomputed, whatever its facts are.
#include <string>

#include "core/check.h"
#include "core/digest.h"
#include "runtime/decisions/decision.h"
#include "runtime/decisions/plan_replay.h"
#include "sync/policy/arbiter.h"
#include "tests/fuzz/bytes.h"
#include "tests/support/members.h"

namespace rivulet::fuzz {
namespace {

using namespace runtime;

/// A view to which a round of `devices` may belong.
ViewRecord view_of(const RoundRecord& round) {
  ViewRecord view;
  view.number = round.view;
  std::vector<std::string> members;
  for (std::size_t i = 0; i < round.table.size(); ++i) members.push_back(std::to_string(i));
  view.members = std::move(members);
  view.policy.contribution_bytes = 4096;
  view.state.round = round.round;
  view.state = sync::policy::first_state(testing::members(round.table.size()), view.policy, {});
  return view;
}

void run(Input input) {
  const std::string line(reinterpret_cast<const char*>(input.data()), input.size());
  const auto record = parse_decision_line(line);
  if (!record) {
    RIVULET_CHECK(record.error().code == ErrorCode::bad_record && !record.error().message.empty(),
                  "refused in words");
    return;
  }
  PlanReplay replay(sync::policy::builtin_controllers());
  const auto* round = std::get_if<RoundRecord>(&record.value());
  if (round != nullptr) (void)replay.take(view_of(*round));
  (void)replay.take(record.value());
}

void seal(Bytes& input) {
  std::string line(reinterpret_cast<const char*>(input.data()), input.size());
  if (const auto at = line.rfind(",\"sum\":\""); at != std::string::npos) line.resize(at);
  line += '}';
  const std::string sum = digest_of(std::as_bytes(std::span(line))).hex().substr(16);
  line.pop_back();
  line += ",\"sum\":\"" + sum + "\"}";
  const auto bytes = std::as_bytes(std::span(line));
  input.assign(bytes.begin(), bytes.end());
}

std::vector<Bytes> seeds() {
  RoundRecord round;
  round.view = 3;
  round.round = 7;
  round.table.facts.resize(2);
  round.table.sections.resize(2);
  for (auto& facts : round.table.facts) {
    facts.rows = 12;
    facts.stream_rate = 123.5;
    facts.compute_seconds = 0.0125;
    facts.rows_max = 1024;
    facts.flags = sync::flag_digest;
  }
  round.table.sections[0].more_intervals = {{{0, 2}, {3, 0}, {9, 0}, 6, 0, 0, 0}};
  round.table.sections[1].runs = {{{0, 1}, {3, 0}, {5, 0}, 2, 1}};
  ViewRecord view = view_of(round);
  std::vector<Bytes> all;
  for (const std::string& line : {decision_line(view), decision_line(round)}) {
    const auto bytes = std::as_bytes(std::span(line));
    all.emplace_back(bytes.begin(), bytes.end());
  }
  return all;
}

}  // namespace

extern const Target target_decision;
const Target target_decision{"decision", run, seeds, seal};

}  // namespace rivulet::fuzz
