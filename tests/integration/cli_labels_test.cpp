// From text labels in a topic to a model that is evaluated by their names.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "core/rng.h"
#include "tests/support/process.h"
#include "tests/support/rivulet_program.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

/// Machines that run hot and shake when they fail, cold and shaking when they are jammed; 3 of 5 are ok.
std::string machine_rows(int rows, std::uint64_t seed) {
  Rng rng(seed);
  const char* states[] = {"ok", "ok", "ok", "fault", "jammed"};
  std::string text;
  for (int i = 0; i < rows; ++i) {
    const auto kind = rng.below(5);
    const double temp = 60 + (kind == 3 ? 20 : kind == 4 ? -20 : 0) + 2 * rng.normal();
    const double rms = (kind < 3 ? 0.2 : 0.8) + 0.02 * rng.normal();
    nlohmann::ordered_json row{
        {"seq", i}, {"temp", temp}, {"vibration", {{"rms", rms}}}, {"state", states[kind]}};
    text += row.dump() + "\n";
  }
  return text;
}

void feed(const std::string& file, const std::string& address, const std::string& topic,
          const std::string& rates = "5000") {
  const auto fed = rivulet_run({"feed", file, "--brokers", address, "--topic", topic, "--rates", rates});
  INFO(fed.errors);
  REQUIRE(fed.status.code == 0);
}

}  // namespace

TEST_CASE(
    "Program: text labels from a topic: a file is written for them, trained with, and measured by name") {
  auto broker = start_broker("machines", "machines:1");
  const TempDir folder;
  feed(folder.write("rows.jsonl", machine_rows(3000, 1)).string(), broker.address, "machines");

  const auto file = (folder.path() / "device.toml").string();
  const auto data = (folder.path() / "data").string();
  const auto made = rivulet_run({"config", "init", "--from-topic", "machines", "--brokers", broker.address,
                                 "--output", file, "--set", "job.name=machines", "--set", "batch.max=32",
                                 "--set", "http.listen=off", "--set", "device.data_dir=" + data});
  INFO(made.errors);
  REQUIRE(made.status.code == 0);
  CHECK(contains(made.errors, "features: temp, vibration.rms"));
  CHECK(contains(made.errors, "to predict: 'state', one of 3 classes: fault, jammed, ok"));
  CHECK(contains(made.errors, "denote a time or an id: seq"));
  const auto valid = rivulet_run({"validate", file, "--environment"}, 30s);
  CHECK_MESSAGE(valid.status.code == 0, valid.output);
  CHECK_MESSAGE(contains(valid.output, "baseline (majority class): ok, "), valid.output);

  const auto run = rivulet_run({"run", "--config", file, "--stop-after", "rows=3000", "--json"}, 60s);
  INFO(run.errors);
  REQUIRE(run.status.code == 0);
  const auto device = nlohmann::json::parse(last_line(run.output))["devices"][0];
  CHECK(device["rows_trained"] == 3000);
  CHECK(device["rows_dropped"].empty());

  const auto held_out = folder.write("held-out.jsonl", machine_rows(300, 2) + "{\"temp\":1}\n").string();
  const auto state = data + "/final.state";
  const auto said = rivulet_run({"evaluate", "--config", file, state, held_out});
  INFO(said.output);
  CHECK(said.status.code == 0);
  CHECK(contains(said.output, "baseline (majority class): ok, "));
  CHECK(contains(said.output, "1 more rows could not be decoded: missing_field"));
  CHECK(contains(said.output, "  jammed  "));
  const auto scores =
      nlohmann::json::parse(rivulet_run({"evaluate", "--config", file, state, held_out, "--json"}).output);
  CHECK(scores["accuracy"].get<double>() > 0.9);
  CHECK(scores["baseline"]["class"] == "ok");
  CHECK(scores["baseline"]["accuracy"].get<double>() < 0.75);
  REQUIRE(scores["classes"].size() == 3);
  std::uint64_t rows = 0;
  std::uint64_t confused = 0;
  for (std::size_t c = 0; c < 3; ++c) {
    CHECK(scores["classes"][c]["class"] == std::vector<std::string>{"fault", "jammed", "ok"}[c]);
    CHECK(scores["classes"][c]["recall"].get<double>() > 0.5);
    rows += scores["classes"][c]["rows"].get<std::uint64_t>();
    for (const auto& count : scores["confusion"][c]) confused += count.get<std::uint64_t>();
  }
  CHECK(rows == 300);
  CHECK(confused == 300);
}

TEST_CASE("Program: validate says where partitions hold other labels, as keys may have it") {
  const TempDir folder;
  const auto only = [](const std::string& wanted) {
    std::istringstream all(machine_rows(600, 5));
    std::string rows;
    for (std::string line; std::getline(all, line);)
      if (contains(line, "\"" + wanted + "\"")) rows += line + "\n";
    return rows;
  };
  const auto said_of = [&](const std::string& first, const std::string& second) {
    auto broker = start_broker("machines", "machines:2");
    feed(folder.write("a.jsonl", first).string(), broker.address, "machines", "5000,0");
    feed(folder.write("b.jsonl", second).string(), broker.address, "machines", "0,5000");
    const auto config = folder
                            .write("device.toml", R"(version = 1
[job]
name = "machines"
devices = 2
[device]
data_dir = ")" + (folder.path() / "data").string() + R"("
[source]
topics = ["machines"]
partitions = [1]
[source.kafka.properties]
bootstrap.servers = ")" + broker.address + R"("
[decode]
format = "json"
[decode.json]
features = ["temp", "vibration.rms"]
target = "state"
classes = ["fault", "jammed", "ok"]
[model]
name = "linear"
[http]
listen = "off"
)")
                            .string();
    return rivulet_run({"validate", config, "--environment"}, 60s).output;
  };
  const auto differs = said_of(only("ok"), only("fault"));
  CHECK_MESSAGE(contains(differs, "labels of machines"), differs);
  CHECK_MESSAGE(contains(differs, "partitioned by content"), differs);
  const auto alike = said_of(machine_rows(300, 6), machine_rows(300, 7));
  CHECK_MESSAGE(contains(alike, "labels of machines"), alike);
  CHECK_MESSAGE(!contains(alike, "partitioned by content"), alike);
}

TEST_CASE("Program: sensors of any unit are learned without a scale, and what that takes is in the state") {
  const TempDir folder;
  const auto rows = folder.write("rows.jsonl", machine_rows(3000, 1)).string();
  const auto held_out = folder.write("held-out.jsonl", machine_rows(300, 2)).string();
  const auto scores_with = [&](const std::string& scale) {
    auto broker = start_broker("machines", "machines:1");
    feed(rows, broker.address, "machines");
    const auto data = (folder.path() / scale).string();
    const auto config = folder
                            .write(scale + ".toml", R"(version = 1
[job]
name = "machines"
devices = 1
[device]
data_dir = ")" + data + R"("
[source]
topics = ["machines"]
partitions = [0]
[source.kafka.properties]
bootstrap.servers = ")" + broker.address + R"("
[decode]
format = "json"
[decode.json]
features = ["temp", "vibration.rms"]
target = "state"
classes = ["fault", "jammed", "ok"]
[model]
name = "linear"
[http]
listen = "off"
)")
                            .string();
    const std::string set = scale == "plain" ? "decode.json.scale=1" : "decode.json.scale=auto";
    const auto run = rivulet_run({"run", "--config", config, "--set", set, "--stop-after", "rows=3000"}, 60s);
    INFO(run.errors);
    REQUIRE(run.status.code == 0);
    const auto said = rivulet_run(
        {"evaluate", "--config", config, "--set", set, data + "/final.state", held_out, "--json"});
    INFO(said.errors);
    REQUIRE(said.status.code == 0);
    return nlohmann::json::parse(said.output)["accuracy"].get<double>();
  };
  const double measured = scores_with("measured");
  CHECK(measured > 0.9);
  CHECK(measured > scores_with("plain") + 0.05);
}

TEST_CASE("Program: peek of text labels says the list to paste, and with it the rows are read") {
  auto broker = start_broker("t", "machines:2");
  const TempDir folder;
  feed(folder.write("rows.jsonl", machine_rows(200, 3)).string(), broker.address, "machines", "5000,5000");
  const auto config = folder
                          .write("device.toml", R"(version = 1
[job]
name = "t"
[source]
topics = ["machines"]
partitions = [1]
[decode]
format = "json"
json = { features = ["temp", "vibration.rms"], target = "state" }
[model]
name = "linear"
)")
                          .string();
  const std::vector<std::string> peek = {"peek",      "machines",     "--config", config,
                                         "--brokers", broker.address, "--rows",   "1000"};
  const auto seen = rivulet_run(peek);
  INFO(seen.output);
  CHECK(seen.status.code == 0);
  CHECK(contains(seen.output, "machines[1] offset 0 row 0"));
  CHECK_FALSE(contains(seen.output, "machines[0]"));  // another device's
  CHECK(contains(seen.output, "2 partitions, of which only these were read: 1"));
  CHECK(contains(seen.output, " rows:\n  wrong_type "));
  CHECK(contains(seen.output, "\n0 rows shown"));
  const std::string key = "  decode.json.classes = ";
  REQUIRE(contains(seen.output, key));
  const auto at = seen.output.find(key);
  auto pasted = seen.output.substr(at + 2, seen.output.find('\n', at) - at - 2);
  pasted.replace(pasted.find(" = "), 3, "=");

  auto with_list = peek;
  with_list.insert(with_list.end(), {"--set", pasted, "--partitions", "all"});
  const auto read = rivulet_run(with_list);
  CAPTURE(read.output);
  CHECK(contains(read.output, ", 0 dropped"));
  CHECK(contains(read.output, "machines[0]"));
  CHECK(contains(read.output, " = ok\n"));
  CHECK(contains(read.output, "  vibration.rms"));
  CHECK(contains(read.output, "first temp "));
}

TEST_CASE("Program: numbers of a CSV topic: a regression is written, trained, and measured beside the mean") {
  auto broker = start_broker("flow", "flow:1");
  const TempDir folder;
  Rng rng(5);
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    const double a = rng.normal();
    const double b = rng.normal();
    text += std::to_string(a) + "," + std::to_string(100 + 10 * b) + "," + std::to_string(a - b / 2) + "\n";
  }
  const auto data = folder.write("rows.csv", text).string();
  feed(data, broker.address, "flow");
  const auto file = (folder.path() / "device.toml").string();
  const auto made =
      rivulet_run({"config", "init", "--from-topic", "flow", "--brokers", broker.address, "--output", file,
                   "--set", "job.name=flow", "--set", "batch.max=32", "--set", "http.listen=off", "--set",
                   "device.data_dir=" + (folder.path() / "data").string()});
  INFO(made.errors);
  REQUIRE(made.status.code == 0);
  CHECK(contains(made.errors, "to predict: '2', a number"));
  const auto run = rivulet_run({"run", "--config", file, "--stop-after", "rows=3000", "--json"}, 60s);
  INFO(run.errors);
  REQUIRE(run.status.code == 0);
  const std::vector<std::string> evaluate = {"evaluate", "--config", file,
                                             (folder.path() / "data" / "final.state").string(), data};
  const auto said = rivulet_run(evaluate);
  CHECK(contains(said.output, "mean absolute error "));
  CHECK(contains(said.output, "baseline (the mean, "));
  auto as_json = evaluate;
  as_json.emplace_back("--json");
  const auto scores = nlohmann::json::parse(rivulet_run(as_json).output);
  CHECK(scores["accuracy"].is_null());
  CHECK(scores["r2"].get<double>() > 0.5);
  CHECK(scores["mae"].get<double>() < scores["baseline"]["mae"].get<double>());
}
