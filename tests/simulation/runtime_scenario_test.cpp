// Whole groups under a scenario: scripted faults, separate links, timing without learning, tables.
#include <doctest/doctest.h>

#include <map>

#include "runtime/process/whole_file.h"
#include "runtime/wiring/simulation_faults.h"
#include "runtime/wiring/simulation_traces.h"
#include "tests/support/group_support.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

runtime::SimulateOptions four_streams(double seconds) {
  runtime::SimulateOptions options;
  options.rates = {{{0, 200}}, {{0, 100}}, {{0, 50}}, {{0, 25}}};
  options.profile = {std::chrono::milliseconds(2), 8000};
  options.link = {std::chrono::milliseconds(1), 12.5e6};
  options.stop_after.seconds = seconds;
  return options;
}

runtime::LoadedConfig reforming_job(std::uint32_t devices) {
  auto job = linear_job(devices);
  job.config.sync.on_peer_loss = "reform";
  return job;
}

std::map<std::string, std::string> files_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto bytes = runtime::read_whole_file(entry.path().string(), 1U << 24U);
    REQUIRE(bytes);
    files[entry.path().filename().string()] =
        std::string(reinterpret_cast<const char*>(bytes.value().data()), bytes.value().size());
  }
  return files;
}

/// The tables of a scenario with all features.
std::map<std::string, std::string> tables_of(std::uint64_t seed, bool timing_only) {
  const TempDir folder;
  auto job = reforming_job(4);
  job.config.job.seed = seed;
  auto options = four_streams(12);
  options.rates = runtime::make_traces("bursty:60", 4, seed, 12).value();
  options.faults =
      runtime::parse_faults("at 3 kill b\nat 4 start b\nat 7 link a 1mbit 5ms\n", "s", 4).value();
  options.csv = (folder.path() / "out").string();
  options.timing_only = timing_only;
  runtime::StopRequest stop{0};
  const auto result = runtime::simulate(job, options, [](double, const auto&) {}, stop);
  INFO(result.message);
  CHECK(result.exit == runtime::ExitCode::ok);
  CHECK(result.summary.parameters_equal);
  return files_of(options.csv);
}

std::uint64_t rows_trained(runtime::SimulatedGroup& group) {
  return group.node(group.witness()).state().rows;
}

}  // namespace

TEST_CASE(
    "Scenario: a killed device is started again, takes the state of the others, and no row is lost or "
    "twice") {
  auto options = four_streams(20);
  options.faults = runtime::parse_faults("at 5 kill a\nat 8 start a\n", "s", 4).value();
  auto group = build_group(reforming_job(4), options);
  group->run_until([&] { return group->seconds() >= 6; });
  CHECK(group->killed(0));
  CHECK(group->witness() == 1);
  const auto before = rows_trained(*group);
  run_to_end(*group);
  CHECK_FALSE(group->killed(0));
  CHECK(rows_trained(*group) > before);
  const auto s = group->summary();
  CHECK(s.parameters_equal);
  for (std::size_t i = 0; i < group->size(); ++i) CHECK_FALSE(group->node(i).worker().ending().error);
  // Its stream continued: rows that arrived in the meantime waited, and were trained.
  const auto& partitions = group->node(1).state().partitions;
  const auto& first = partitions.at({0, 0});
  CHECK(first.adds_up());
  CHECK(static_cast<double>(first.trained) >= 0.95 * 200 * group->seconds());
  CHECK(first.trained + first.holes == static_cast<std::uint64_t>(first.next.offset));
}

TEST_CASE("Scenario: who leaves a group that goes on has an older state, and that is no difference") {
  auto job = reforming_job(4);
  job.config.job.devices = {2, 4, 4};
  auto options = four_streams(8);
  options.faults = runtime::parse_faults("at 4 stop d\n", "s", 4).value();
  runtime::StopRequest stop{0};
  const auto result = runtime::simulate(job, options, [](double, const auto&) {}, stop);
  INFO(result.message);
  CHECK(result.exit == runtime::ExitCode::ok);
  CHECK(result.summary.devices[3].digest != result.summary.devices[0].digest);
  CHECK(result.summary.parameters_equal);
}

TEST_CASE("Scenario: who is stopped leaves, and the others wait for it as production does") {
  auto options = four_streams(10);
  options.faults = runtime::parse_faults("at 4 stop d\n", "s", 4).value();
  auto group = build_group(linear_job(4), options);  // exit: the group ends with it
  run_to_end(*group);
  CHECK(group->seconds() < 6);
  CHECK_FALSE(group->node(3).worker().ending().error);
  CHECK(group->node(0).worker().ending().leaver_lost);
}

TEST_CASE(
    "Scenario: a group that waits for what no script brings ends, says for whom, and keeps what it did") {
  const TempDir folder;
  auto options = four_streams(12);
  options.csv = (folder.path() / "out").string();
  const auto play = [&](const std::string& script, const runtime::RateTrace& streams) {
    options.rates = {streams};
    options.faults = runtime::parse_faults(script, "s", 4).value();
    runtime::StopRequest stop{0};
    const RealClock real;
    const auto limit = real.now() + std::chrono::minutes(2);
    // Limits the test where the group would wait forever.
    const auto patient = [&](double, const auto&) { stop.store(real.now() > limit ? 1 : 0); };
    auto result = runtime::simulate(reforming_job(4), options, patient, stop);
    CHECK(stop.load() == 0);
    return result;
  };
  const auto lost = play("at 3 kill b\n", {{0, 100}});
  CHECK(lost.exit == runtime::ExitCode::failure);
  CHECK(contains(lost.message, "waiting for device-02"));
  CHECK(lost.summary.rounds > 10);
  const auto rounds = files_of(options.csv).at("rounds.csv");
  CHECK(rounds.size() > 500);
  CHECK(contains(rounds, ",payload_bytes,why\n"));
  CHECK(contains(rounds, "\"\n"));
  CHECK(contains(play("at 3 stop a\n", {{0, 100}}).message, "waiting for device-01"));
  CHECK(play("at 3 kill b\nat 2000 start b\n", {{0, 100}}).exit == runtime::ExitCode::ok);
  const auto dead = play("at 3 kill a\nat 3 kill b\nat 3 kill c\nat 4 kill d\n", {{0, 100}});
  CHECK(dead.exit == runtime::ExitCode::failure);
  CHECK(contains(dead.message, "device-01 was killed and not restarted"));
  const auto left = play("at 3 stop a\nat 4 kill b\nat 4 kill c\nat 4 kill d\n", {{0, 100}});
  CHECK(left.exit == runtime::ExitCode::failure);
  CHECK(contains(left.message, "device-02 was killed and not restarted"));
  options.stop_after = {.rounds = 1'000'000};
  CHECK(contains(play("", {{0, 100}, {5, 0}}).message, "silent from second 5 on"));
  options.link.latency = std::chrono::seconds(10);
  const auto slow = play("", {{0, 100}});
  CHECK_MESSAGE(contains(slow.message, "longer than sync.deadline"), slow.message);
}

TEST_CASE("Scenario: a folder that cannot hold the tables is found before anything runs") {
  const TempDir folder;
  folder.write("file", "");
  auto options = four_streams(12);
  options.csv = (folder.path() / "file" / "out").string();
  runtime::StopRequest stop{0};
  const auto result = runtime::simulate(reforming_job(4), options, [](double, const auto&) {}, stop);
  CHECK(result.exit == runtime::ExitCode::unavailable);
  CHECK(contains(result.message, options.csv));
  CHECK(result.virtual_seconds == 0);
}

TEST_CASE("Scenario: a slower link of one device slows every round of the group") {
  const auto rounds = [](const std::string& script) {
    auto options = four_streams(20);
    options.link = {};
    options.faults = runtime::parse_faults(script, "s", 4).value();
    auto group = build_group(linear_job(4), options);
    run_to_end(*group);
    CHECK(group->summary().parameters_equal);
    return group->summary().rounds;
  };
  const auto fast = rounds("");
  const auto slow = rounds("at 10 link a 8kbit 100ms\n");
  CHECK(fast > 150);
  CHECK(slow > fast / 2);  // the first half is unaffected
  // From 10 s on a round takes over a second: everything that a receives from its three peers shares 8
  // kbit/s.
  CHECK(slow <= fast / 2 + 10);
}

TEST_CASE("Scenario: the same seed writes the same bytes into every table, another seed does not") {
  for (const bool timing_only : {false, true}) {
    CAPTURE(timing_only);
    const auto tables = tables_of(7, timing_only);
    CHECK(tables.size() == 5);
    for (const char* name : {"rounds.csv", "shares.csv", "devices.csv", "summary.csv"})
      CHECK(tables.at(name).size() > 100);
    CHECK(tables_of(7, timing_only) == tables);
    CHECK(tables_of(8, timing_only).at("rounds.csv") != tables.at("rounds.csv"));
  }
}

TEST_CASE("Scenario: without learning, the same rounds use the same rows at the same times") {
  const auto learning = tables_of(7, false);
  const auto timing = tables_of(7, true);
  CHECK(learning.at("shares.csv") == timing.at("shares.csv"));
  CHECK(learning.at("rounds.csv") != timing.at("rounds.csv"));  // which also have the loss
}
