// A job with a changed configuration finds its earlier states; and almost correct names.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/rng.h"
#include "tests/support/rivulet_program.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

using Arguments = std::vector<std::string>;

/// Machines that run hot when they fail, and cold when they are jammed.
std::string machine_rows(int rows) {
  Rng rng(3);
  const char* states[] = {"ok", "fault", "jammed"};
  std::string text;
  for (int i = 0; i < rows; ++i) {
    const auto kind = rng.below(3);
    const nlohmann::ordered_json row{{"temp", 60.0 + 20 * (kind == 1) - 20 * (kind == 2) + rng.normal()},
                                     {"rms", 0.2 + 0.5 * (kind > 0) + 0.02 * rng.normal()},
                                     {"state", states[kind]},
                                     {"line", states[(i * 7) % 3]}};
    text += row.dump() + "\n";
  }
  return text;
}

/// A job on a broker that has trained on the first rows of its topic and ended.
struct Job {
  explicit Job(int rows = 1500) {
    broker = start_broker("machines", "machines:1");
    data = folder.write("rows.jsonl", machine_rows(3000)).string();
    const auto fed =
        rivulet_run({"feed", data, "--brokers", broker.address, "--topic", "machines", "--rates", "9000"});
    REQUIRE_MESSAGE(fed.status.code == 0, fed.errors);
    file = folder
               .write("device.toml", R"(version = 1
[job]
name = "machines"
devices = 1
[device]
data_dir = ")" + at("data") + R"("
[source]
topics = ["machines"]
[source.kafka.properties]
bootstrap.servers = ")" + broker.address +
                                         R"("
[decode]
format = "json"
[decode.json]
features = ["temp", "rms"]
target = "state"
classes = ["fault", "jammed", "ok"]
[model]
name = "linear"
[checkpoint]
every = { interval = "300ms" }
[http]
listen = "off"
)")
               .string();
    const auto ran = run({"--stop-after", "rows=" + std::to_string(rows)});
    REQUIRE_MESSAGE(ran.status.code == 0, ran.errors);
  }
  [[nodiscard]] std::string at(const std::string& name) const { return (folder.path() / name).string(); }
  [[nodiscard]] RunOutput command(Arguments words, const Arguments& more = {}) const {
    words.insert(words.end(), {"--config", file});
    words.insert(words.end(), more.begin(), more.end());
    return rivulet_run(words);
  }
  [[nodiscard]] RunOutput run(const Arguments& more) const { return command({"run"}, more); }
  /// All files of the device with their bytes, except its decision log.
  [[nodiscard]] std::set<std::string> files() const {
    std::set<std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(at("data")))
      if (entry.is_regular_file() && !contains(entry.path().filename().string(), "decisions"))
        all.insert(entry.path().string() + ": " + read_file(entry.path()));
    return all;
  }
  TempDir folder;
  Broker broker;
  std::string data;
  std::string file;
};

const Arguments reordered = {"--set", R"(decode.json.classes=["ok","jammed","fault"])"};
constexpr const char* both_lists = "classes [fault, jammed, ok], here [ok, jammed, fault]";

void check_refused(const RunOutput& said, const std::string& words) {
  INFO(said.errors);
  CHECK(said.status.code == 78);
  CHECK(last_line(said.errors).starts_with("error: "));
  CHECK(contains(last_line(said.errors), words));
  CHECK_FALSE(contains(last_line(said.errors), "on none of"));
}

}  // namespace

TEST_CASE("Program: a state whose numbers mean something else is refused by every command, with both lists") {
  const Job job;
  const auto before = job.files();
  const struct {
    Arguments set;
    std::string words;
  } changes[] = {
      {reordered, both_lists},
      {{"--set", R"(decode.json.features=["rms","temp"])"}, "features [temp, rms], here [rms, temp]"},
      {{"--set", "decode.json.target=line"}, "target [state], here [line]"},
      {{"--set", "decode.json.scale=1"}, "scale [auto], here [1]"}};
  for (const auto& [set, words] : changes) {
    auto more = set;
    more.insert(more.end(), {"--stop-after", "rows=500"});
    const auto said = job.run(more);
    check_refused(said, words);
    CHECK(contains(last_line(said.errors), "--new-run"));
    CHECK(contains(last_line(said.errors), job.at("data/checkpoints/")));
    CHECK(job.files() == before);
  }
  const auto state = job.at("data/final.state");
  check_refused(job.command({"evaluate", state, job.data}, reordered), both_lists);
  check_refused(job.command({"checkpoint", "export", job.at("data"), job.at("m.safetensors")},
                            {"--set", R"(decode.json.classes=["ok","jammed","fault"])"}),
                both_lists);
  check_refused(job.command({"checkpoint", "show", state}, reordered), both_lists);
  CHECK(contains(job.command({"checkpoint", "verify"}, reordered).errors, both_lists));

  const auto on = job.run({"--stop-after", "rows=500", "--json"});
  REQUIRE_MESSAGE(on.status.code == 0, on.errors);
  CHECK(nlohmann::json::parse(last_line(on.output))["devices"][0]["rows_trained"] <= 1000);  // it resumed
  auto anew = reordered;
  anew.insert(anew.end(), {"--new-run", "--stop-after", "rows=500"});
  const auto over = job.run(anew);
  CHECK_MESSAGE(over.status.code == 0, over.errors);
  CHECK(job.command({"evaluate", state, job.data}, reordered).status.code == 0);
}

TEST_CASE("Program: where all that was saved is damaged, the last error of a start begins with that") {
  const Job job;
  std::string newest;
  for (const auto& entry : std::filesystem::directory_iterator(job.at("data/checkpoints")))
    if (entry.path().extension() == ".ckpt") {
      flip(entry.path(), 200);
      newest = std::max(newest, entry.path().string());
    }
  REQUIRE_FALSE(newest.empty());
  const auto said = job.run({"--stop-after", "rows=500"});
  INFO(said.errors);
  CHECK(said.status.code == 78);
  const auto last = last_line(said.errors);
  CHECK(last.starts_with("error: " + job.at("data/checkpoints/")));
  CHECK(contains(last, "is damaged; the group's saved state ("));
}

TEST_CASE("Program: checkpoint ls says when a state was saved and how good it was, and marks the best") {
  const Job job(3000);
  const auto said = job.command({"checkpoint", "ls"});
  INFO(said.output);
  CHECK(contains(said.output, " UTC  accuracy "));
  CHECK(contains(said.output, " % (best)"));
  const auto all = nlohmann::json::parse(job.command({"checkpoint", "ls", "--json"}).output);
  REQUIRE_FALSE(all.empty());
  CHECK(all[0]["saved_ms"].get<std::int64_t>() > 1'700'000'000'000);
  CHECK(all[0]["measure"] == "accuracy");
  CHECK(all[0]["score"].get<double>() > 0.5);
  int best = 0;
  for (const auto& one : all) best += one["best"].get<bool>() ? 1 : 0;
  CHECK(best == 1);
}

TEST_CASE(
    "Program: a job's name that is nearly another's, a file in the place of an option: what was meant") {
  const Job job;
  const auto stop = rivulet_run({"stop", "--job", "machins", "--brokers", job.broker.address});
  CHECK(stop.status.code == 69);
  CHECK_MESSAGE(contains(stop.errors, "did you mean 'rivulet.machines.control'?"), stop.errors);
  const auto run = rivulet_run({"run", job.file});
  CHECK(run.status.code == 2);
  CHECK_MESSAGE(
      contains(run.errors, "unknown argument '" + job.file + "' - did you mean '--config " + job.file + "'?"),
      run.errors);
  const auto valid =
      job.command({"checkpoint", "export", job.at("data/final.state"), job.at("m.safetensors")});
  REQUIRE(valid.status.code == 0);
  const auto wrong = job.command({"evaluate", job.at("m.safetensors"), job.data});
  CHECK(wrong.status.code != 0);
  CHECK_MESSAGE(contains(wrong.errors, "safetensors"), wrong.errors);
}
