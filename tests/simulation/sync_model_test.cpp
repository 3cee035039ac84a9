// Compares the fold with the model of the protocol (tests/model/view_change.pml). Spin simulates the model at
// random and prints every record and the model's own fold after it. Our fold gets the same records as bytes.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include "sync/membership/fold.h"
#include "tests/support/effort.h"
#include "tests/support/places.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace rivulet::sync::membership;
using namespace std::chrono_literals;

namespace {

const char* const names[] = {"a", "b", "c", "d"};

struct Simulation {
  std::uint32_t devices = 3;
  std::uint32_t quorum = 2;
  std::uint64_t seed = 0;
  std::string mutation;  ///< of the model
};

/// One record in the model's notation: states are histories, sessions only "present" or "the one before".
struct SimulatedRecord {
  std::string kind;
  std::size_t device = 0;
  bool present = true;
  std::uint64_t view = 0;
  Stamp stamp;
  std::uint64_t history = 0;
};

/// Result of a fold after a record.
struct Conclusion {
  bool counts = false;
  std::uint64_t view = 0;
  std::vector<std::string> members;
  Stamp target;
  std::string target_digest;
  std::vector<std::string> holders;
  Committed committed;
  std::vector<std::string> live;  ///< devices whose READY counts
  bool operator==(const Conclusion&) const = default;
};

std::string text_of(const std::vector<std::string>& ids) {
  std::string text;
  for (const auto& id : ids) text += id;
  return "{" + text + "}";
}

std::string text_of(const Conclusion& c) {
  return std::string(c.counts ? "counts" : "ignored") + ", view " + std::to_string(c.view) + " of " +
         text_of(c.members) + " from " + rivulet::text_of(c.target) + " " + c.target_digest + " of " +
         text_of(c.holders) + ", committed " + rivulet::text_of(c.committed.stamp) + " " +
         c.committed.digest + ", live " + text_of(c.live);
}

std::string digest_of_history(std::uint64_t history) {
  return "h" + std::to_string(history);
}

std::vector<std::string> ids_in(std::uint64_t set) {
  std::vector<std::string> ids;
  for (std::size_t d = 0; d < std::size(names); ++d)
    if ((set >> d & 1U) != 0) ids.emplace_back(names[d]);
  return ids;
}

std::string simulate(const Simulation& s, const TempDir& folder) {
  const auto define = [](const char* name, std::uint64_t value) {
    return std::string("-D") + name + "=" + std::to_string(value);
  };
  ProcessOptions options;
  options.command = {"spin", "-T", "-n" + std::to_string(s.seed), "-u8000", "-DSIMULATION"};
  for (const auto& [name, value] : std::map<const char*, std::uint64_t>{{"N", s.devices},
                                                                        {"LEAST", s.devices},
                                                                        {"QUORUM", s.quorum},
                                                                        {"VIEWS", 8},
                                                                        {"STEPS", 9},
                                                                        {"BASE", 9},
                                                                        {"CRASHES", 50},
                                                                        {"DISKS", 3}})
    options.command.push_back(define(name, value));
  options.command.emplace_back("-DHISTORY=int");
  if (!s.mutation.empty()) options.command.push_back("-D" + s.mutation);
  options.command.emplace_back(source_path("tests/model/view_change.pml"));
  options.directory = folder.path();
  const RunOutput ran = run(options, 60s);
  const bool broken = contains(ran.output, "assertion violated");
  REQUIRE_MESSAGE((ran.status.code == 0 || broken),
                  "spin, which scripts/setup --for tests installs: ", ran.errors);
  REQUIRE_MESSAGE((!broken || !s.mutation.empty()), ran.output);
  return ran.output;
}

Conclusion conclusion_of(const std::string& line) {
  std::istringstream fields(line);
  std::string word;
  Conclusion c;
  std::uint64_t members{}, history{}, holders{}, committed{}, live{};
  fields >> c.counts >> word >> c.view >> word >> members;
  fields >> word >> c.target.lineage >> c.target.step >> history >> word >> holders;
  fields >> word >> c.committed.stamp.lineage >> c.committed.stamp.step >> committed >> word >> live;
  REQUIRE_MESSAGE(fields, line);
  c.members = ids_in(members);
  c.holders = ids_in(holders);
  c.live = ids_in(live);
  if (c.view > 0) c.target_digest = digest_of_history(history);
  if (c.committed.stamp.step > 0) c.committed.digest = digest_of_history(committed);
  return c;
}

/// The next record and the model's result; nullopt at the end of the log.
std::optional<std::pair<SimulatedRecord, Conclusion>> next_of(std::istream& log) {
  SimulatedRecord r;
  std::string line;
  while (std::getline(log, line)) {
    std::istringstream fields(line);
    fields >> r.kind >> r.device;
    if (r.kind == "READY" || r.kind == "SAVED")
      fields >> r.present >> r.view >> r.stamp.lineage >> r.stamp.step >> r.history;
    else if (r.kind == "CLOSE")
      fields >> r.present >> r.view;
    else if (r.kind != "HELLO")
      continue;
    REQUIRE_MESSAGE(fields, line);
    REQUIRE(r.device < std::size(names));
    std::string word;
    if (!(log >> word) || word != "so" || !std::getline(log, line)) break;  // cut off by the limit of steps
    return std::pair(r, conclusion_of(line));
  }
  return std::nullopt;
}

/// Builds a log from the model's records, with the sessions that it assigns to them, and folds it.
class Replay {
 public:
  explicit Replay(const Simulation& s) : simulation_(s) {}

  Conclusion take(const SimulatedRecord& r) {
    const auto bytes = encode(record_of(r), "model");
    REQUIRE_MESSAGE(bytes, bytes.error().message);
    const std::uint64_t ignored = fold_.ignored.total();
    if (r.kind == "HELLO") sessions_[r.device] = {sessions_[r.device].second, next_};
    // Over a second apart: every HELLO voids all READYs, as in the model.
    apply(fold_, LogEntry{next_, next_ * 1000, bytes.value()}, "model");
    next_ += 3;
    return conclusion(fold_.ignored.total() == ignored);
  }
  [[nodiscard]] const Fold& fold() const { return fold_; }
  /// Every device has the session of its last HELLO.
  [[nodiscard]] bool sessions_fit() const {
    return std::all_of(sessions_.begin(), sessions_.end(), [&](const auto& entry) {
      return fold_.devices.at(names[entry.first]).session == entry.second.second;
    });
  }

 private:
  [[nodiscard]] ControlRecord record_of(const SimulatedRecord& r) const {
    const std::string id = names[r.device];
    if (r.kind == "HELLO") return hello(id);
    const auto& [before, present] = sessions_.at(r.device);
    const std::int64_t session = r.present ? present : before;
    if (r.kind == "CLOSE") return Close{id, session, r.view};
    const std::string digest = digest_of_history(r.history);
    if (r.kind == "READY") return Ready{id, session, r.view, r.stamp, digest, "gave up"};
    return Saved{id, session, r.view, r.stamp, digest, "file"};
  }
  [[nodiscard]] Hello hello(const std::string& id) const {
    Hello hello;
    hello.device = id;
    hello.nonce = id + std::to_string(next_);
    hello.host = "host";
    hello.devices = simulation_.devices;
    hello.config_hash = "h";
    hello.config = {{"checkpoint.quorum", std::to_string(simulation_.quorum)}};
    return hello;
  }
  [[nodiscard]] Conclusion conclusion(bool counts) const {
    const auto& view = fold_.view;
    Conclusion c{counts,      view.number,  view.members,    view.target,
                 view.digest, view.holders, fold_.committed, {}};
    for (const auto& [id, device] : fold_.devices)
      if (is_live(fold_, device)) c.live.push_back(id);
    return c;
  }

  const Simulation simulation_;
  Fold fold_;
  std::int64_t next_ = 5;
  /// The session before the last, or an offset without a HELLO, and the last.
  std::map<std::size_t, std::pair<std::int64_t, std::int64_t>> sessions_;
};

struct Seen {
  std::uint64_t records = 0, views = 0, commits = 0, without_committed = 0;
  std::map<Ignored, std::uint64_t> ignored;
};

/// Compares our fold of a simulated log with the model's; returns the first difference, or nothing.
std::string first_difference(const Simulation& s, const TempDir& folder, Seen& seen) {
  std::istringstream log(simulate(s, folder));
  Replay replay(s);
  Conclusion last;
  while (const auto next = next_of(log)) {
    const auto& [record, expected] = *next;
    const Conclusion found = replay.take(record);
    ++seen.records;
    if (found != expected || !replay.sessions_fit())
      return "record " + std::to_string(seen.records) + ", " + record.kind + " of " + names[record.device] +
             ":\n  the model: " + text_of(expected) + "\n  the fold:  " + text_of(found);
    seen.commits += found.committed != last.committed ? 1 : 0;
    seen.without_committed += record.kind == "CLOSE" && record.present && !found.counts &&
                                      record.view == found.view + 1 && found.live.size() == s.devices
                                  ? 1
                                  : 0;
    last = found;
  }
  seen.views += last.view;
  for (std::size_t r = 0; r < ignored_reasons; ++r)
    seen.ignored[static_cast<Ignored>(r)] += replay.fold().ignored.of(static_cast<Ignored>(r));
  return {};
}

Simulation simulation_of(std::uint64_t seed) {
  return {.devices = 3 + static_cast<std::uint32_t>(seed % 2),
          .quorum = 1 + static_cast<std::uint32_t>(seed % 3),
          .seed = seed,
          .mutation = ""};
}

}  // namespace

TEST_CASE("Model: the fold concludes what the model of the protocol does, record by record") {
  const TempDir folder;
  Seen seen;
  const std::uint64_t first = seed_or(1);
  const int logs = repetitions(40, 1500);
  for (int i = 0; i < logs; ++i) {
    const Simulation s = simulation_of(first + static_cast<std::uint64_t>(i));
    const std::string difference = first_difference(s, folder, seen);
    REQUIRE_MESSAGE(difference.empty(), "seed ", s.seed, ", ", difference);
  }
  report_figure("model.logs", logs, "logs");
  report_figure("model.records", static_cast<double>(seen.records), "records");
  report_figure("model.views", static_cast<double>(seen.views), "views");
  CHECK(seen.views > 2 * static_cast<std::uint64_t>(logs));
  CHECK(seen.commits > static_cast<std::uint64_t>(logs));
  CHECK(seen.without_committed > 0);  // all were ready, and none had the saved state
  for (const auto reason : {Ignored::stale_session, Ignored::wrong_view, Ignored::replayed, Ignored::refused})
    CHECK_MESSAGE(seen.ignored[reason] > 0, name_of(reason));
}

TEST_CASE("Model: a model that lacks one of its rules is told from the fold") {
  const TempDir folder;
  for (const auto* mutation : {"NO_FENCE", "NO_GUARD", "NO_RESTAMP", "NO_LINEAGE"}) {
    bool differs = false;
    for (std::uint64_t seed = 1; seed <= 60 && !differs; ++seed) {
      Simulation s = simulation_of(seed);
      s.mutation = mutation;
      Seen seen;
      differs = !first_difference(s, folder, seen).empty();
    }
    CHECK_MESSAGE(differs, mutation);
  }
}
