// Replays recorded runs from their decision log: plans from the facts, and the state from the rows.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <sstream>

#include "runtime/decisions/decision_log.h"
#include "runtime/decisions/plan_replay.h"
#include "tests/support/drawn_decisions.h"
#include "tests/support/group_support.h"
#include "tests/support/replay/replay_streams.h"
#include "tests/support/replay/state_replay.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace rivulet::runtime;

namespace {

/// A run of uneven streams with changing rates, and the log of its first device.
struct RecordedRun {
  TempDir folder;
  LoadedConfig job;
  std::string log;
  Summary summary;
  std::uint64_t step = 0;
  bool gathers = true;  ///< otherwise each pair exchanges one message that can be lost
};

SimulateOptions changing(double seconds) {
  SimulateOptions options;
  options.rates = {{{0, 800}, {2, 200}}, {{0, 100}, {2, 400}}, {{0, 50}}, {{0, 20}, {1, 0}, {3, 300}}};
  options.profile = {std::chrono::milliseconds(2), 8000};
  options.link = {std::chrono::milliseconds(1), 12.5e6};
  options.stop_after.seconds = seconds;
  return options;
}

void record(RecordedRun& run, const SimulateOptions& options, std::uint64_t log_bytes,
            const std::function<void(SimulatedGroup&)>& play) {
  run.log = (run.folder.path() / "decisions.jsonl").string();
  SimulatedParts parts;
  parts.decisions = [&](std::size_t device) {
    if (device > 0) return make_null_decision_log();
    auto log = open_decision_log(run.log, log_bytes);
    REQUIRE(log);
    return std::move(log).value();
  };
  parts.separate = !run.gathers;
  auto group = build_group(run.job, options, parts);
  play(*group);
  run.summary = group->summary();
  run.step = group->node(0).state().stamp.step;
}

/// Gradients of every batch, with the group's momentum.
void compressed_by(Config& config, const char* compressor) {
  config.compression.policy = "fixed";
  config.settings.set("compression.compressor", std::string(compressor));
  config.settings.set("compression.keep", 0.1);
  config.settings.set("compression.momentum", std::string("group"));
}

void to_the_end(SimulatedGroup& group) {
  run_to_end(group);
}

Result<StateReplayReport> again(const RecordedRun& run, const std::string& log,
                                const std::string& state = "") {
  Config config = run.job.config;
  config.source.type = "synthetic";  // source of simulated devices
  auto streams = ReplayStreams::create(config, "");
  REQUIRE(streams);
  const StopRequest stop{0};
  return replay_state(
      run.job, builtin_catalog(), {log, state},
      [&](const PartitionId& id, std::int64_t offset) { return streams.value()->open(id, offset); },
      [](const StateReplayReport&) {}, stop);
}

/// Replays the state of the log; it must equal that of the run, without differences on the way.
StateReplayReport came_out_again(const RecordedRun& run) {
  const auto state = again(run, run.log);
  REQUIRE_MESSAGE(state, state.error().message);
  const auto& report = state.value();
  CHECK_MESSAGE(!report.difference, report.difference->what.field, ": ", report.difference->what.recorded,
                " / ", report.difference->what.computed);
  CHECK(report.digest.hex() == run.summary.devices[0].digest);
  return report;
}

const std::vector<Fault> killed_and_back{{.at_s = 1.5, .kind = Fault::Kind::kill, .device = 1},
                                         {.at_s = 2, .kind = Fault::Kind::start, .device = 1}};

/// Number of contributions that devices withheld as not finite.
std::size_t refused_in(const RecordedRun& run) {
  std::istringstream lines(read_file(run.log));
  std::size_t refused = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto record = parse_decision_line(line);
    REQUIRE(record);
    if (const auto* round = std::get_if<RoundRecord>(&record.value()))
      for (const auto& facts : round->table.facts)
        refused += (facts.flags & sync::flag_nonfinite) != 0 ? 1 : 0;
  }
  return refused;
}

/// How well a change is hidden: only the checksum of its line is updated, or also the digests in all later
/// lines.
enum class Forger : std::uint8_t { careful, thorough };

/// A log with one changed round.
void forge(const RecordedRun& run, std::uint64_t wanted, const std::function<void(RoundRecord&)>& change,
           Forger forger = Forger::thorough) {
  std::istringstream lines(read_file(run.log));
  std::string text;
  std::optional<std::uint64_t> witnessed;
  for (std::string line; std::getline(lines, line);) {
    auto record = parse_decision_line(line);
    REQUIRE(record);
    auto* round = std::get_if<RoundRecord>(&record.value());
    if (round != nullptr && round->round == wanted) change(*round);
    if (round != nullptr && round->round >= wanted && forger == Forger::thorough)
      witnessed = bear_witness(*round, witnessed);
    if (round != nullptr) line = decision_line(*round);
    text += line + "\n";
  }
  run.folder.write("forged.jsonl", text);
}

/// Errors of both replays for the forged log.
std::string said_of_forged(const RecordedRun& run) {
  const std::string log = (run.folder.path() / "forged.jsonl").string();
  const auto report = again(run, log);
  if (!report) return report.error().message;
  return report.value().difference ? report.value().difference->what.field : "nothing differs";
}

}  // namespace

TEST_CASE("Replay: a group's log gives its plans again, and its rows give its state again, to the last bit") {
  RecordedRun run;
  run.job = linear_job(4);
  SimulateOptions options = changing(5);
  std::size_t refused_at_least = 0;
  SUBCASE("policy stream") {}
  SUBCASE("policy fixed, whose rounds wait for the slowest") {
    run.job.config.batch.policy = "fixed";
    run.job.config.batch.rows = 16;
  }
  SUBCASE("summed instead of gathered") {
    run.job.config.sync.collective = "sum";
  }
  SUBCASE("own steps with momentum, then an agreement") {
    run.job.config.sync.policy = "periodic";
    run.job.config.settings.set("sync.local_steps", std::int64_t{4});
  }
  SUBCASE("own steps that go on while the group agrees") {
    run.job.config.sync.policy = "periodic";
    run.job.config.settings.set("sync.local_steps", std::int64_t{4});
    run.job.config.settings.set("sync.overlap", std::string("always"));
    options.link = {std::chrono::milliseconds(20), 1e5};
  }
  SUBCASE("own steps that are scaled by their own rows, also those that were made ahead") {
    run.job.config.sync.policy = "periodic";
    run.job.config.settings.set("sync.local_steps", std::int64_t{4});
    run.job.config.settings.set("sync.overlap", std::string("always"));
    run.job.config.settings.set("train.lr_scaling.rule", std::string("sqrt"));
    options.link = {std::chrono::milliseconds(20), 1e5};
  }
  SUBCASE("own steps that go too far, and are dropped") {
    run.job.config.sync.policy = "periodic";
    run.job.config.settings.set("sync.local_steps", std::int64_t{8});
    run.job.config.settings.set("sync.overlap", std::string("always"));
    run.job.config.train.lr = 4;
    refused_at_least = 1;
  }
  SUBCASE("by what was measured") {
    run.job.config.sync.policy = run.job.config.compression.policy = run.job.config.sync.collective = "auto";
    run.job.config.settings.set("sync.local_steps_max", std::int64_t{4});
  }
  SUBCASE("thin matrices, whose factors stay from round to round") {
    compressed_by(run.job.config, "low_rank");
  }
  SUBCASE("the largest of one device, by turns") {
    compressed_by(run.job.config, "topk");
    run.job.config.sync.collective = "shared_index";
  }
  SUBCASE("SelSync's calls and GraVAC's gate, whose collective is learned") {
    run.job.config.sync.policy = "selsync";
    run.job.config.compression.policy = "gravac";
    run.job.config.sync.collective = "learned";
    run.job.config.settings.set("sync.selsync.steps_max", std::int64_t{4});
    run.job.config.settings.set("compression.gravac.window", std::int64_t{5});
  }
  SUBCASE(
      "batches by what was measured, a learning rate that follows them and the rows trained, and rows "
      "dropped") {
    auto& c = run.job.config;
    c.sync.policy = c.compression.policy = c.sync.collective = "auto";
    c.batch.policy = "unified";
    c.train.lr_schedule = "step";
    c.settings.set("train.lr_scaling.rule", std::string("sqrt"));
    c.settings.set("train.lr_schedule.every_rows", std::int64_t{150});
    c.source.retention = "truncate-oldest";
    c.batch.max = 8;
    options.profile = {std::chrono::milliseconds(20), 400};
  }
  record(run, options, 1 << 30, to_the_end);
  const auto plans = replay_plans(run.log, sync::policy::builtin_controllers());
  REQUIRE_MESSAGE(plans, plans.error().message);
  CHECK(plans.value().proven());
  const auto report = came_out_again(run);
  CHECK(report.rounds == plans.value().rounds);
  CHECK(report.digests_compared >= 4 * report.rounds);
  CHECK(report.steps > 5);
  CHECK(report.stamp.step == run.step);
  CHECK(report.rows > 200);
  CHECK(refused_in(run) >= refused_at_least);
}

TEST_CASE(
    "Replay: a compressed run comes out again, with a device that was killed and came back with nothing") {
  RecordedRun run;
  run.job = linear_job(4);
  run.job.config.sync.on_peer_loss = "reform";
  run.job.config.compression.policy = "fixed";
  run.job.config.settings.set("compression.compressor", std::string("random-k"));
  run.job.config.settings.set("compression.keep", 0.3);
  SimulateOptions options = changing(5);
  options.faults = killed_and_back;
  record(run, options, 1 << 30, to_the_end);
  const auto report = came_out_again(run);
  CHECK(report.views == 2);
  CHECK(report.digests_compared > 100);
}

TEST_CASE("Replay: own steps come out again, around a device that was killed and one that kept its steps") {
  RecordedRun run;
  run.job = linear_job(4);
  auto& c = run.job.config;
  c.sync.on_peer_loss = "reform";
  c.sync.policy = "periodic";
  c.settings.set("sync.local_steps", std::int64_t{4});
  SimulateOptions options = changing(8);
  SUBCASE("dense") {}
  SUBCASE("compressed") {
    c.compression.policy = "fixed";
    c.settings.set("compression.compressor", std::string("random-k"));
    c.settings.set("compression.keep", 0.3);
  }
  SUBCASE("by what was measured") {
    c.sync.policy = c.compression.policy = c.sync.collective = "auto";
  }
  SUBCASE("going on while the group agrees, compressed or not") {
    options.link = {std::chrono::milliseconds(20), 1e5};
    c.settings.set("sync.overlap", std::string("always"));
    SUBCASE("dense") {}
    SUBCASE("compressed") {
      c.compression.policy = "fixed";
      c.settings.set("compression.compressor", std::string("topk"));
      c.settings.set("compression.keep", 0.3);
      SUBCASE("gathered") {}
      SUBCASE("by owners of slices") {
        c.sync.collective = "two_sided";
      }
    }
  }
  SUBCASE("a few of the largest after each step, which take their momentum along") {
    c.sync.policy = "every";
    c.compression.policy = "fixed";
    c.settings.set("compression.compressor", std::string("topk"));
    c.settings.set("compression.keep", 0.1);
  }
  SUBCASE("as thin matrices") {
    c.sync.policy = "every";
    compressed_by(c, "low_rank");
  }
  options.faults = killed_and_back;
  record(run, options, 1 << 30, to_the_end);
  const auto report = came_out_again(run);
  CHECK(report.views == 2);
  CHECK(report.steps > 8);
}

/// With a short window mean and deviation change all the time, and so do the layers that depend on them.
TEST_CASE("Replay: what follows moving columns comes out again, around a device that was killed") {
  RecordedRun run;
  run.job = linear_job(4);
  auto& c = run.job.config;
  c.sync.on_peer_loss = "reform";
  c.decode.normalize = true;
  c.normalize.window = 100;
  c.train.balanced = true;
  c.train.clip_usual = true;
  SimulateOptions options = changing(8);
  SUBCASE("gradients, compressed") {
    c.sync.policy = "every";
    c.compression.policy = "fixed";
    c.settings.set("compression.compressor", std::string("topk"));
    c.settings.set("compression.keep", 0.1);
  }
  SUBCASE("own steps") {
    c.sync.policy = "periodic";
    c.settings.set("sync.local_steps", std::int64_t{4});
  }
  SUBCASE("own steps that go on while the group agrees, compressed") {
    c.sync.policy = "periodic";
    c.settings.set("sync.local_steps", std::int64_t{4});
    options.link = {std::chrono::milliseconds(20), 1e5};
    c.settings.set("sync.overlap", std::string("always"));
    c.compression.policy = "fixed";
    c.settings.set("compression.compressor", std::string("topk"));
    c.settings.set("compression.keep", 0.3);
  }
  SUBCASE("of Adam") {
    c.sync.policy = "periodic";
    c.settings.set("sync.local_steps", std::int64_t{4});
    c.train.optimizer = "adam";
    c.train.lr = 0.01;
  }
  options.faults = killed_and_back;
  std::size_t moved = 0;
  record(run, options, 1 << 30, [&](SimulatedGroup& group) {
    std::vector<devices::Column> seen;
    run_to_end(
        group,
        [&] {
          const auto now = group.node(0).state().model.columns();
          if (!seen.empty() && seen.front().rows > 0 && seen.front().shown_mean != now.front().shown_mean)
            ++moved;
          seen.assign(now.begin(), now.end());
          return false;
        },
        60);
  });
  CHECK(moved > 5);
  const auto report = came_out_again(run);
  CHECK(report.views == 2);
}

TEST_CASE(
    "Replay: a group whose model diverges goes back, the second time without the rows, and so does a "
    "replay") {
  RecordedRun run;
  run.job = linear_job(4);
  auto& c = run.job.config;
  c.train.clip_usual = false;
  c.train.lr = 8000;  // a sixteenth of it is small enough
  SimulateOptions options = changing(30);
  options.rates = {{{0, 400}}, {{0, 300}}, {{0, 200}}, {{0, 200}}};
  SUBCASE("gradients") {}
  SUBCASE("own steps, compressed") {
    c.train.lr = 200;
    c.sync.policy = "periodic";
    c.settings.set("sync.local_steps", std::int64_t{4});
    c.compression.policy = "fixed";
    c.settings.set("compression.compressor", std::string("random-k"));
    c.settings.set("compression.keep", 0.3);
  }
  record(run, options, 1 << 30, to_the_end);
  const auto report = came_out_again(run);
  CHECK(report.views == 3);
  std::istringstream lines(read_file(run.log));
  std::vector<std::uint64_t> rows;  // starts of the views, and ends of the first two
  for (std::string line; std::getline(lines, line);) {
    const auto record = parse_decision_line(line);
    const auto* round = std::get_if<RoundRecord>(&record.value());
    if (round == nullptr) continue;
    const auto retreat = round->plan.now.retreat;
    CHECK(retreat != sync::policy::Retreat::give_up);
    if (round->round == 0 || retreat != sync::policy::Retreat::none)
      rows.push_back(round->table.facts[0].agreed_rows);
  }
  REQUIRE(rows.size() == 5);
  CHECK(rows[2] == 0);        // everything is read again
  CHECK(rows[4] == rows[3]);  // rows that failed twice are skipped
  CHECK(rows[3] >= 2000);
  CHECK(run.summary.parameters_equal);
}

TEST_CASE("Replay: where devices saw copies of others' rows, plans come out again, and the rest is refused") {
  for (const char* policy : {"every", "periodic"}) {
    INFO(policy);
    RecordedRun run;
    run.job = linear_job(3);
    run.job.config.batch.policy = "fixed";
    run.job.config.batch.rows = 16;
    run.job.config.sync.policy = policy;
    run.job.config.settings.set("sync.local_steps", std::int64_t{4});
    run.job.config.inject.policy = "random";
    record(run, changing(3), 1 << 30, to_the_end);
    const auto plans = replay_plans(run.log, sync::policy::builtin_controllers());
    REQUIRE_MESSAGE(plans, plans.error().message);
    CHECK(plans.value().proven());
    const auto state = again(run, run.log);
    REQUIRE_FALSE(state);
    CHECK(contains(state.error().message, "copies of others' rows, which a replay cannot do again"));
  }
}

TEST_CASE("Replay: one changed fact makes it fail, also where no plan depends on it") {
  RecordedRun run;
  run.job = linear_job(4);
  record(run, changing(4), 1 << 30, to_the_end);
  constexpr std::uint64_t round = 20;
  forge(run, round, [](RoundRecord&) {});
  CHECK(said_of_forged(run) == "nothing differs");
  SUBCASE("rows") {
    forge(run, round, [](RoundRecord& r) { ++r.table.facts[1].rows; });
    CHECK(said_of_forged(run) != "nothing differs");
  }
  SUBCASE("an interval of another place") {
    forge(run, round, [](RoundRecord& r) { ++r.table.facts[0].interval.first.offset; });
    CHECK(contains(said_of_forged(run), "partition lines:0"));
  }
  SUBCASE("an interval that ends a row later") {
    forge(run, round, [](RoundRecord& r) {
      ++r.table.facts[0].interval.next.offset;
      ++r.table.facts[0].interval.rows_trained;
    });
    CHECK(said_of_forged(run) == "rows of device-01");
  }
  SUBCASE("a loss") {
    forge(run, round,
          [](RoundRecord& r) { r.table.facts[0].loss_sum = std::nextafter(r.table.facts[0].loss_sum, 1e9); });
    CHECK(said_of_forged(run) == "loss_sum of device-01");
  }
  SUBCASE("a gradient") {
    forge(run, round, [](RoundRecord& r) { r.table.facts[0].gradient_norm2 *= 2; });
    CHECK(said_of_forged(run) == "gradient_norm2 of device-01");
  }
  SUBCASE("a rate") {
    forge(run, round, [](RoundRecord& r) { r.table.facts[0].stream_rate *= 2; });
    CHECK(said_of_forged(run) == "next.rows");
  }
  SUBCASE("a batch that is said not to have been finite") {
    forge(run, round, [](RoundRecord& r) {
      r.table.facts[0].flags |= sync::flag_nonfinite;
      r.table.facts[0].loss_sum = 1.5;
    });
    CHECK(said_of_forged(run) == "flags of device-01");
  }
  SUBCASE("everybody's digest") {
    forge(run, round, [](RoundRecord& r) {
      for (auto& f : r.table.facts) ++f.digest.low;
    });
    CHECK(said_of_forged(run) == "digest of device-01");
  }
}

TEST_CASE("Replay: each fact has the next round for a witness, also those that nothing is made of") {
  RecordedRun run;
  run.job = linear_job(4);
  SUBCASE("policy stream") {}
  SUBCASE("policy fixed") {
    run.job.config.batch.policy = "fixed";
    run.job.config.batch.rows = 16;
  }
  record(run, changing(3), 1 << 30, to_the_end);
  const std::vector<std::function<void(sync::Facts&)>> changes{
      [](auto& f) { f.flags ^= sync::flag_dry_run; },
      [](auto& f) { f.flags ^= sync::flag_nonfinite; },
      [](auto& f) { f.flags ^= sync::flag_incomplete; },
      [](auto& f) { ++f.queue_rows; },
      [](auto& f) { f.stream_rate = std::nextafter(f.stream_rate, 1e9F); },
      [](auto& f) { f.compute_seconds = std::nextafter(f.compute_seconds, 1e9F); },
      [](auto& f) { f.wait_seconds = std::nextafter(f.wait_seconds, 1e9F); },
      [](auto& f) { f.sync_seconds = std::nextafter(f.sync_seconds, 1e9F); },
      [](auto& f) { f.loss_sum += 1e-9; },
      [](auto& f) { ++f.correct; },
      [](auto& f) { f.gradient_norm2 = std::nan(""); },
      [](auto& f) { ++f.rows_dropped; },
      [](auto& f) { ++f.digest.high; },
      [](auto& f) { ++f.rows_max; },
      [](auto& f) { ++f.agreed_rows; },
      [](auto& f) { f.stop_at_step = 1'000'000; },
      [](auto& f) { f.stop_at_rows = 1'000'000'000; },
      [](auto& f) { ++f.interval.next.offset; },
      [](auto& f) { ++f.interval.holes; },
  };
  forge(run, 8, [](RoundRecord&) {}, Forger::careful);
  const std::string log = (run.folder.path() / "forged.jsonl").string();
  REQUIRE(replay_plans(log, sync::policy::builtin_controllers()).value().proven());
  for (std::size_t i = 0; i < changes.size(); ++i) {
    CAPTURE(i);
    forge(run, 8, [&](RoundRecord& r) { changes[i](r.table.facts[2]); }, Forger::careful);
    const auto report = replay_plans(log, sync::policy::builtin_controllers());
    CHECK((!report || report.value().difference));
    if (i % 7 == 0) CHECK(said_of_forged(run) != "nothing differs");
  }
}

TEST_CASE("Replay: a log without a round proves nothing") {
  RecordedRun run;
  run.job = linear_job(4);
  record(run, changing(3), 1 << 30, to_the_end);
  const std::string text = read_file(run.log);
  run.folder.write("view.jsonl", text.substr(0, text.find('\n') + 1));
  const auto report = again(run, (run.folder.path() / "view.jsonl").string());
  REQUIRE_FALSE(report);
  CHECK(contains(report.error().message, "no round"));
}

TEST_CASE("Replay: a view is lost with a payload, another goes on, and so does the replay") {
  RecordedRun run;
  run.job = linear_job(4);
  run.job.config.sync.on_peer_loss = "reform";
  run.gathers = false;
  auto lost_on = sync::Lane::speculative;
  SUBCASE("dense") {}
  SUBCASE("compressed: with the facts") {
    run.job.config.compression.policy = "fixed";
    run.job.config.settings.set("compression.compressor", std::string("random-k"));
    run.job.config.settings.set("compression.keep", 0.3);
    lost_on = sync::Lane::facts;
  }
  SUBCASE("own steps with momentum, compressed both ways") {
    auto& c = run.job.config;
    c.sync.policy = "periodic";
    c.settings.set("sync.local_steps", std::int64_t{2});
    c.sync.collective = "two_sided";
    c.compression.policy = "fixed";
    c.settings.set("compression.compressor", std::string("topk"));
    c.settings.set("compression.keep", 0.3);
    lost_on = sync::Lane::phase;
  }
  std::uint64_t behind = lost_on == sync::Lane::phase ? 5 : 15;
  SUBCASE("own steps, before the group has agreed about any") {
    run.job.config.sync.policy = "periodic";
    run.job.config.settings.set("sync.local_steps", std::int64_t{2});
    lost_on = sync::Lane::facts;
    behind = 0;
  }
  record(run, changing(12), 1 << 30, [wanted = lost_on, behind](SimulatedGroup& group) {
    bool lost = false;  // device-01 lacks the step of the others
    group.network().set_loss([&](std::uint32_t from, std::uint32_t to, sync::Lane lane, std::uint64_t index) {
      const bool now = !lost && from == 1 && to == (wanted == sync::Lane::facts ? 2U : 0U) &&
                       lane == wanted && index > behind;
      lost = lost || now;
      return now;
    });
    group.run_until([&] { return group.seconds() > 60; });
    CHECK(lost);
    CHECK(group.all_ended());
  });
  const auto state = again(run, run.log);
  REQUIRE_MESSAGE(state, state.error().message);
  CHECK(state.value().views == 2);
  CHECK_FALSE(state.value().difference);
  CHECK(state.value().stamp.step == run.step);
  CHECK(state.value().digest.hex() == run.summary.devices[0].digest);
}

TEST_CASE("Replay: a view that begins with an older state than the log has come to begins with that again") {
  RecordedRun run;
  run.job = linear_job(4);
  record(run, changing(3), 1 << 30, to_the_end);
  // As after a restart of the whole group from its first state, with the same steps.
  std::istringstream lines(read_file(run.log));
  std::string text = read_file(run.log);
  for (std::string line; std::getline(lines, line);) {
    auto record = parse_decision_line(line).value();
    if (auto* view = std::get_if<ViewRecord>(&record))
      view->number += 1, view->token += 1, view->state.view += 1;
    if (auto* round = std::get_if<RoundRecord>(&record)) round->view += 1;
    text += std::visit([](const auto& r) { return decision_line(r); }, record) + "\n";
  }
  run.folder.write("twice.jsonl", text);
  const auto twice = again(run, (run.folder.path() / "twice.jsonl").string());
  REQUIRE_MESSAGE(twice, twice.error().message);
  CHECK_FALSE(twice.value().difference);
  CHECK(twice.value().views == 2);
  CHECK(twice.value().steps == 2 * run.step);
  CHECK(twice.value().digest.hex() == run.summary.devices[0].digest);
}

TEST_CASE(
    "Replay: a log of which the beginning is gone gives its plans again, and says what its state lacks") {
  RecordedRun run;
  run.job = linear_job(4);
  record(run, changing(5), 30'000, to_the_end);
  const auto plans = replay_plans(run.log, sync::policy::builtin_controllers());
  REQUIRE_MESSAGE(plans, plans.error().message);
  CHECK(plans.value().proven());
  REQUIRE(plans.value().notes.size() == 2);
  CHECK(contains(plans.value().notes[0], "were deleted"));
  CHECK(contains(plans.value().notes[1], "begins in the middle of view 1"));
  const auto state = again(run, run.log);
  REQUIRE_FALSE(state);
  CHECK(contains(state.error().message, "no round of this log starts from the state"));
}
