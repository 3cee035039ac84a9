// A production run on a real Kafka: four processes, LeNet-5, changing rates; and its replay from the log of
// one device and the records in the topic.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/config/config.h"
#include "runtime/decisions/decision.h"
#include "tests/support/device_group.h"
#include "tests/support/drawn_decisions.h"
#include "tests/support/effort.h"
#include "tests/support/kafka_server.h"
#include "tests/support/replay/replay_streams.h"
#include "tests/support/replay/state_replay.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;
using Json = nlohmann::json;

namespace {

/// Changes the last bit of one device's loss in the `nth` training round; updates all checksums and all later
/// digests.
std::string with_another_loss(const std::string& log, int nth) {
  std::istringstream lines(log);
  std::string text;
  std::optional<std::uint64_t> witnessed;
  for (std::string line; std::getline(lines, line); text += line + "\n") {
    auto record = runtime::parse_decision_line(line);
    REQUIRE_MESSAGE(record, record.error().message);
    auto* round = std::get_if<runtime::RoundRecord>(&record.value());
    if (round == nullptr) continue;
    const bool chosen = round->table.facts[2].rows > 0 && --nth == 0;
    if (chosen) round->table.facts[2].loss_sum = std::nextafter(round->table.facts[2].loss_sum, 1e9);
    if (chosen || witnessed) witnessed = bear_witness(*round, witnessed);
    line = runtime::decision_line(*round);
  }
  REQUIRE_MESSAGE(witnessed, "no round was changed: device-3 trained in too few of them");
  return text;
}

/// Replays the log of a device of the demo in `kept`, with the rows still in its topic.
Result<runtime::StateReplayReport> replayed(const std::string& kept, const std::string& log,
                                            const std::vector<std::string>& sets = {}) {
  const auto loaded = runtime::load_config({.file = kept + "/job.toml", .sets = sets});
  REQUIRE(loaded.problems.empty());
  devices::prepare_process(loaded.config.device.threads);
  const auto streams = runtime::ReplayStreams::create(loaded.config, "").value();
  const runtime::StopRequest stop{0};
  return runtime::replay_state(
      loaded, runtime::builtin_catalog(), {log, ""},
      [&](const PartitionId& partition, std::int64_t offset) { return streams->open(partition, offset); },
      [](const runtime::StateReplayReport&) {}, stop);
}

}  // namespace

TEST_CASE("Replay: four processes, LeNet, changing rates on a real Kafka come to the same state again") {
  auto kafka = KafkaServer::start();
  REQUIRE(kafka);
  const TempDir folder;
  const std::string kept = (folder.path() / "demo").string();
  const auto demo = run_rivulet({"demo", "--brokers", kafka.value()->brokers(), "--devices", "4", "--rates",
                                 "200,100,50,25", "--seconds", "16", "--keep", kept, "--json"},
                                180s);
  INFO(demo.output);
  INFO(demo.errors);
  REQUIRE(demo.status.code == 0);
  const auto summary = Json::parse(last_line(demo.output));
  const auto digest = summary["devices"][0]["digest"].get<std::string>();
  double trained = 0;
  for (const auto& one : summary["devices"]) trained += one["rows_trained"].get<double>();
  const std::string device = kept + "/device-1";
  const std::string log = device + "/decisions.jsonl";
  REQUIRE(std::filesystem::exists(log));

  const auto plans = run_rivulet({"decisions", "replay", log, "--json"}, 60s);
  INFO(plans.output);
  INFO(plans.errors);
  CHECK(plans.status.code == 0);
  const auto state = replayed(kept, log);
  REQUIRE_MESSAGE(state, state.error().message);
  const runtime::StateReplayReport& report = state.value();
  REQUIRE_MESSAGE(!report.difference, report.difference->what.field);
  CHECK(report.digest.hex() == digest);
  CHECK(report.rounds == Json::parse(last_line(plans.output))["rounds"]);
  CHECK(static_cast<double>(report.rows) == trained);
  CHECK(trained > 100);  // the machine determines how many: checks that the run was real
  report_figure("replay.rows", static_cast<double>(report.rows), "rows");
  report_figure("replay.digests_compared", static_cast<double>(report.digests_compared), "digests");

  const auto forged = folder.write("forged.jsonl", with_another_loss(read_file(log), 2)).string();
  const auto found = replayed(kept, forged);
  REQUIRE(found);
  REQUIRE(found.value().difference);
  CHECK(found.value().difference->what.field == "loss_sum of device-3");

  const auto refused = replayed(kept, log, {"train.optimizer.lr=0.9"});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::invalid_config);
  CHECK(contains(refused.error().message, "another configuration"));

  const auto told = run_rivulet({"decisions", "explain", log, "--last", "3"}, 60s);
  CHECK(told.status.code == 0);
  CHECK(contains(told.output, "All devices save the state after this round."));
  CHECK(contains(told.output, "The group stops after this round."));
}
