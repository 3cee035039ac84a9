#include "runtime/cli/replay_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>

#include "runtime/cli/evaluation.h"
#include "runtime/cli/progress_line.h"
#include "runtime/cli/text.h"
#include "runtime/node/catalog.h"
#include "runtime/process/signals.h"
#include "runtime/replay/state_replay.h"
#include "runtime/wiring/replay_streams.h"

namespace rivulet::runtime::cli {
namespace {

using Json = nlohmann::ordered_json;

/// What the digest at the end should be, and where it comes from. Empty digest: from nowhere.
struct ExpectedDigest {
  std::string digest;
  std::string of;
};

/// A device that ended writes final.state beside its log; if it is of the step that the log ends with, it
/// says. One of another step is noted: the log, or the state, is not of the end.
Result<ExpectedDigest> expected_at_the_end(const LoadedConfig& loaded, const std::string& log,
                                           const std::string& given, StateReplayReport& report) {
  if (!given.empty()) return ExpectedDigest{given, "--expect"};
  const auto beside = std::filesystem::path(log).parent_path() / "final.state";
  std::error_code ignored;
  if (!std::filesystem::exists(beside, ignored)) return ExpectedDigest{};
  const auto facts = inspect_state_file(loaded, beside.string());
  if (!facts) return facts.error();
  const auto step = facts.value().stamp.step;
  if (step == report.stamp.step) return ExpectedDigest{facts.value().digest.hex(), beside.string()};
  report.notes.push_back(
      fmt::format("{} is of step {} and the log ends at step {}: it does not say what came out",
                  beside.string(), step, report.stamp.step));
  return ExpectedDigest{};
}

void print_report(const StateReplayReport& r, const ExpectedDigest& expected, bool equal, std::ostream& out) {
  for (const auto& note : r.notes) out << note << '\n';
  if (r.difference)
    out << fmt::format("{}: view {}, round {}: {} is recorded as {}, and came out as {}\n",
                       r.difference->place, r.difference->view, r.difference->round, r.difference->what.field,
                       r.difference->what.recorded, r.difference->what.computed);
  out << fmt::format("{} rounds of {} views, {} steps with {} rows trained again, {} digests compared\n",
                     grouped(r.rounds), grouped(r.views), grouped(r.steps), grouped(r.rows),
                     grouped(r.digests_compared));
  out << fmt::format("state {}, digest {}", text_of(r.stamp), r.digest.hex());
  if (r.difference)
    out << ": NOT the recorded run (other hardware or another LibTorch computes other bits, too)\n";
  else if (expected.digest.empty())
    out << ": every recorded number came out again\n";
  else
    out << (equal ? ": that of " : ": NOT that of ") << expected.of << (equal ? "" : ", " + expected.digest)
        << '\n';
}

void print_report_json(const StateReplayReport& r, const ExpectedDigest& expected, bool equal,
                       std::ostream& out) {
  Json j{{"equal", equal},
         {"views", r.views},
         {"rounds", r.rounds},
         {"steps", r.steps},
         {"rows", r.rows},
         {"digests_compared", r.digests_compared},
         {"lineage", r.stamp.lineage},
         {"step", r.stamp.step},
         {"digest", r.digest.hex()},
         {"expected", expected.digest},
         {"notes", r.notes},
         {"difference", nullptr}};
  if (r.difference)
    j["difference"] = {{"place", r.difference->place},
                       {"view", r.difference->view},
                       {"round", r.difference->round},
                       {"field", r.difference->what.field},
                       {"recorded", r.difference->what.recorded},
                       {"computed", r.difference->what.computed}};
  out << j.dump() << '\n';
}

}  // namespace

void ReplayFlags::add_to(CLI::App& app, const std::vector<const char*>& of_made_up_runs) {
  auto* replay =
      app.add_option(
             "--replay", log_,
             "train again what this decisions.jsonl recorded, with the rows of [source] or --data; every "
             "recorded digest must come out")
          ->type_name("LOG");
  for (const char* option : of_made_up_runs) replay->excludes(app.get_option(option));
  app.add_option("--state", state_,
                 "with --replay: the checkpoint to begin with, for a log that begins later")
      ->type_name("FILE")
      ->needs(replay);
  app.add_option("--expect", expect_,
                 "with --replay: digest of the state at the end; else that of final.state")
      ->type_name("DIGEST")
      ->needs(replay);
  for (const char* option : {"--replay", "--state", "--expect"}) app.get_option(option)->check(not_empty);
}

ExitCode ReplayFlags::run(Terminal& terminal, const LoadedConfig& loaded, const std::string& data,
                          bool json) const {
  StopRequest stop{0};
  const SignalHandlers handlers(stop);
  auto streams = ReplayStreams::create(loaded.config, data);
  if (!streams) return complain(terminal, streams.error());
  ProgressLine line(terminal.err_screen(), terminal.interactive);
  auto replayed = replay_state(
      loaded, builtin_catalog(), {log_, state_},
      [&](const PartitionId& partition, std::int64_t offset) {
        return streams.value()->open(partition, offset);
      },
      [&](const StateReplayReport& r) {
        if (r.rounds % 100 == 99)
          line.show(fmt::format("{} rounds, {} rows", grouped(r.rounds), grouped(r.rows)));
      },
      stop);
  if (!replayed && replayed.error().code == ErrorCode::cancelled) {
    terminal.err << "error: interrupted before the end of the log\n";
    return ExitCode::failure;  // nothing was shown to come out again
  }
  if (!replayed) return complain(terminal, replayed.error());
  auto& report = replayed.value();
  const auto at_the_end = expected_at_the_end(loaded, log_, expect_, report);
  if (!at_the_end) return complain(terminal, at_the_end.error());
  const ExpectedDigest& expected = at_the_end.value();
  const bool equal =
      !report.difference && (expected.digest.empty() || expected.digest == report.digest.hex());
  if (json)
    print_report_json(report, expected, equal, terminal.out);
  else
    print_report(report, expected, equal, terminal.out);
  return equal ? ExitCode::ok : ExitCode::failure;
}

}  // namespace rivulet::runtime::cli
