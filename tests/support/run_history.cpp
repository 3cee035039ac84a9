#include "tests/support/run_history.h"
#include "runtime/decisions/decision_files.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

namespace rivulet::testing {
namespace {

using nlohmann::json;

struct RowsUsed {
  std::int32_t partition = 0;
  std::int64_t first = 0;
  std::int64_t next = 0;
  std::uint64_t trained = 0;
  std::int64_t dropped = 0;
  bool operator==(const RowsUsed&) const = default;
};

struct Round {
  std::uint64_t step = 0;  ///< before it
  std::uint64_t plan = 0;  ///< its hash
  bool steps = false;      ///< the plan applies a step
  std::vector<RowsUsed> rows;
  bool operator==(const Round&) const = default;
};

using Key = std::pair<std::uint64_t, std::uint64_t>;  // view and round
using Rounds = std::map<Key, Round>;

void add_rows(const json& interval, Round& round) {
  const RowsUsed rows{interval["partition"][1], interval["first"][0], interval["next"][0],
                      interval["rows_trained"], interval["rows_dropped"]};
  if (rows.next > rows.first) round.rows.push_back(rows);
}

Round round_of(const json& line) {
  Round round{line["step"], line["plan"]["hash"], false, {}};
  const std::string mode = line["plan"]["now"]["mode"];
  for (const auto& facts : line["facts"]) {
    add_rows(facts["interval"], round);
    for (const auto& more : facts.value("section", json::object()).value("more_intervals", json::array()))
      add_rows(more, round);
  }
  // If no device has rows, skipped ranges still move the offsets, which is a step.
  round.steps = mode == "gradients" || mode == "delta" || (mode == "idle" && !round.rows.empty());
  return round;
}

/// The devices announce the digest of their state in every round.
bool is_of_one_state(const json& line) {
  const auto& facts = line["facts"];
  return std::ranges::all_of(facts, [&](const json& f) { return f["digest"] == facts.front()["digest"]; });
}

std::string name_of(const Key& key) {
  return "view " + std::to_string(key.first) + ", round " + std::to_string(key.second);
}

void read_file(const std::string& path, Rounds& rounds, RunHistory& history) {
  std::ifstream in(path);
  Key last{0, 0};
  for (std::string text; std::getline(in, text);) {
    const auto line = json::parse(text, nullptr, false);
    if (!line.is_object()) {
      ++history.torn_lines;
      continue;
    }
    if (!line.contains("round")) continue;  // the line of a view
    const Key key{line["view"], line["round"]};
    if (key <= last && last != Key{0, 0}) history.wrong.push_back(path + " rolls back to " + name_of(key));
    last = key;
    const Round round = round_of(line);
    if (!is_of_one_state(line)) history.wrong.push_back(path + " has two states in " + name_of(key));
    const auto [at, fresh] = rounds.emplace(key, round);
    if (!fresh && at->second != round)
      history.wrong.push_back(path + " decided otherwise in " + name_of(key));
  }
}

std::uint64_t rows_in(const Round& round) {
  std::uint64_t rows = 0;
  for (const auto& used : round.rows) rows += used.trained;
  return rows;
}

/// A later view that begins at an earlier step replaces the rounds after that step. Goes backwards, so that
/// every round is compared with the lowest beginning of all later views.
std::vector<Rounds::const_iterator> surviving(const Rounds& rounds, std::uint64_t final_step,
                                              RunHistory& history) {
  std::vector<Rounds::const_iterator> chain;
  std::uint64_t limit = final_step;
  std::uint64_t view = 0;
  std::uint64_t lowest = final_step;  // of the current view
  for (auto at = rounds.end(); at != rounds.begin();) {
    --at;
    if (at->first.first != view) limit = std::min(limit, lowest);
    view = at->first.first;
    lowest = at->second.step;
    if (!at->second.steps) continue;
    if (at->second.step < limit) {
      chain.push_back(at);
      continue;
    }
    ++history.lost_rounds;
    history.rows_again += rows_in(at->second);
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

void follow_rows(const Key& key, const Round& round, RunHistory& history) {
  for (const auto& used : round.rows) {
    auto& next = history.next_offset[used.partition];
    // Records without rows may precede the first row.
    if (used.first < next || used.first - next > used.dropped)
      history.wrong.push_back("partition " + std::to_string(used.partition) + " stood at " +
                              std::to_string(next) + ", " + name_of(key) + " begins at " +
                              std::to_string(used.first));
    next = used.next;
  }
}

}  // namespace

RunHistory read_history(const std::vector<std::string>& directories, std::uint64_t final_step) {
  RunHistory history;
  Rounds rounds;
  for (const auto& directory : directories)
    for (const auto& file : runtime::decision_files(directory + "/decisions.jsonl"))
      read_file(file.path, rounds, history);
  for (const auto& [key, round] : rounds) history.begins.emplace(key.first, round.step);
  for (const auto& at : surviving(rounds, final_step, history)) {
    const auto& [key, round] = *at;
    if (round.step != history.rounds)
      history.wrong.push_back(name_of(key) + " is at step " + std::to_string(round.step) + ", " +
                              std::to_string(history.rounds) + " rounds lead to it");
    history.rounds = round.step + 1;
    history.rows += rows_in(round);
    follow_rows(key, round, history);
  }
  if (history.rounds != final_step)
    history.wrong.push_back("the rounds lead to step " + std::to_string(history.rounds) +
                            ", the state is at " + std::to_string(final_step));
  return history;
}

}  // namespace rivulet::testing
