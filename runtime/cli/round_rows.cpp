#include "runtime/cli/round_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/decisions/decision_files.h"

namespace rivulet::runtime::cli {
namespace {

using Json = nlohmann::ordered_json;

RowInterval interval_of(const Json& j) {
  const bool old = j.contains("topic");  // format version 3 or older
  RowInterval i;
  i.partition = {(old ? j.at("topic") : j.at("partition").at(0)).get<std::uint32_t>(),
                 (old ? j.at("partition") : j.at("partition").at(1)).get<std::int32_t>()};
  i.first = {j.at("first").at(0).get<std::int64_t>(), j.at("first").at(1).get<std::uint32_t>()};
  i.next = {j.at("next").at(0).get<std::int64_t>(), j.at("next").at(1).get<std::uint32_t>()};
  j.at(old ? "trained" : "rows_trained").get_to(i.rows_trained);
  j.at(old ? "dropped" : "rows_dropped").get_to(i.rows_dropped);
  j.at(old ? "shared" : "non_final_rows").get_to(i.non_final_rows);
  j.at("holes").get_to(i.holes);
  return i;
}

/// Rounds of a log, as they are read.
struct Rounds {
  std::vector<RoundRows> all;
  std::uint64_t view = 0;       ///< last view of this device
  std::uint64_t last_step = 0;  ///< that the last round was to make
};

/// If this device missed views that made steps, it cannot tell whether they went on from its last round or
/// from the one before. All others had finished the one before when they entered the last.
void begin_view(const Json& line, Rounds& rounds) {
  const auto view = line.at("view").get<std::uint64_t>();
  if (rounds.view > 0 && line.value("lineage", std::uint64_t{0}) > rounds.view)
    std::erase_if(rounds.all, [&](const RoundRows& r) { return r.step >= rounds.last_step; });
  rounds.view = view;
}

/// A round that starts from step s replaces earlier rounds that made step s + 1 or later.
void add_round(const Json& line, Rounds& known) {
  if (!line.contains("round")) return begin_view(line, known);
  std::vector<RoundRows>& rounds = known.all;
  const auto begun_at = line.at("step").get<std::uint64_t>();
  const auto replaced = std::ranges::find_if(rounds, [&](const RoundRows& r) { return r.step > begun_at; });
  rounds.erase(replaced, rounds.end());
  known.last_step = begun_at + 1;
  const auto add = [&](const Json& interval) {
    const RowInterval rows = interval_of(interval);
    if (!rows.empty()) rounds.push_back({line.at("view").get<std::uint64_t>(), begun_at + 1, rows});
  };
  for (const Json& facts : line.at("facts")) {
    add(facts.at("interval"));
    const Json& section = facts.contains("section") ? facts.at("section") : facts;
    if (const auto more = section.find("more_intervals"); more != section.end())
      for (const Json& interval : *more) add(interval);
  }
}

Status read_log(const std::string& path, Rounds& rounds) {
  std::ifstream in(path);
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (in.eof()) break;  // a killed process may leave an incomplete last line
    try {
      add_round(Json::parse(line), rounds);
    } catch (const Json::exception& e) {
      return Error{ErrorCode::bad_record, fmt::format("{}: line {}: {}", path, number, e.what())};
    }
  }
  if (in.bad()) return Error{ErrorCode::io, "cannot read " + path};
  return ok();
}

}  // namespace

Result<std::vector<RoundRows>> rounds_in(const std::string& data_dir, std::uint64_t step) {
  Rounds rounds;
  const std::string log = data_dir + "/decisions.jsonl";
  for (const auto& file : decision_files(log))
    if (auto read = read_log(file.path, rounds); !read) return read.error();
  std::erase_if(rounds.all, [&](const RoundRows& r) { return r.step > step; });
  return std::move(rounds.all);
}

std::vector<Stretch> without_round(const PartitionId& partition, const PartitionProgress& books,
                                   const std::vector<RoundRows>& rounds) {
  std::vector<Stretch> out;
  RowCursor at = books.start;
  for (const RoundRows& round : rounds) {
    if (round.rows.partition != partition) continue;
    if (at < round.rows.first) out.push_back({at, round.rows.first});
    at = std::max(at, round.rows.next);
  }
  if (at < books.next) out.push_back({at, books.next});
  return out;
}

}  // namespace rivulet::runtime::cli
