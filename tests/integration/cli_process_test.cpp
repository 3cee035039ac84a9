#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/http/http_server.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

const std::string binary = RIVULET_BINARY;
const std::string images = std::string(RIVULET_SOURCE_DIR "/examples/mnist/data");

ProcessOptions rivulet_with(const std::vector<std::string>& arguments) {
  ProcessOptions options;
  options.command = {binary};
  options.command.insert(options.command.end(), arguments.begin(), arguments.end());
  return options;
}

RunOutput rivulet_run(const std::vector<std::string>& arguments, Duration deadline = 60s) {
  return run(rivulet_with(arguments), deadline);
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

/// `rivulet broker` with its address.
struct Broker {
  std::unique_ptr<Process> process;
  std::string address;
};

Broker start_broker(const std::string& job, const std::string& topic) {
  Broker broker;
  auto started = Process::start(rivulet_with({"broker", "--job", job, "--topic", topic}));
  REQUIRE(started);
  broker.process = std::move(started).value();
  REQUIRE(broker.process->wait_for_output("runs until", 20s));
  const auto line = first_line(broker.process->output());
  REQUIRE(line.starts_with("bootstrap.servers=127.0.0.1:"));
  broker.address = line.substr(line.find('=') + 1);
  return broker;
}

}  // namespace

TEST_CASE("Program: wrong usage is exit 2, a wrong configuration 78 with place and suggestion") {
  CHECK(rivulet_run({"run", "--nonsense"}).status.code == 2);
  CHECK(rivulet_run({"rnu"}).status.code == 2);
  const TempDir folder;
  const auto file =
      folder.write("device.toml", "version = 1\n[job]\nname = \"t\"\n[decode]\nfrmat = \"raw\"\n").string();
  const auto wrong = rivulet_run({"run", "--config", file});
  CHECK(wrong.status.code == 78);
  CHECK(contains(wrong.errors, file + ":5:1: error:"));
  CHECK(contains(wrong.errors, "did you mean"));
  CHECK(contains(wrong.errors, "format"));
  CHECK(rivulet_run({"run", "--config", "/nowhere/device.toml"}).status.code == 78);
}

TEST_CASE("Program: validate refuses rows that do not fit the model, as run would") {
  const TempDir folder;
  const auto file =
      folder
          .write("device.toml",
                 "version = 1\n[job]\nname = \"t\"\n[decode.raw]\nshape = [3, 4]\n[source]\n"
                 "topics = [\"t\"]\n[source.kafka.properties]\n\"bootstrap.servers\" = \"h:1\"\n")
          .string();
  const auto said = rivulet_run({"validate", file, "--set", "model.name=lenet5"});
  CHECK(said.status.code == 78);
  CHECK(contains(said.errors, "needs rows of shape"));
  CHECK(contains(said.errors, "3, 4"));
  CHECK(rivulet_run({"validate", file, "--set", "model.name=mlp"}).status.code == 0);
}

TEST_CASE("Program: /livez says that the process lives, /readyz whether it is part of a group, and why not") {
  const TempDir folder;
  const auto broker = start_broker("t", "rows:2");
  const int port = free_port();
  const auto config = folder
                          .write("device.toml",
                                 "version = 1\n[job]\nname = \"t\"\ndevices = 2\n[source]\n"
                                 "topics = [\"rows\"]\n[model]\nname = \"linear\"\n")
                          .string();
  const auto start = [&](int device, const std::string& http) {
    return Process::start(rivulet_with({"run", "--config", config, "--brokers", broker.address, "--id",
                                        "d" + std::to_string(device), "--partitions", std::to_string(device),
                                        "--data-dir", (folder.path() / std::to_string(device)).string(),
                                        "--http", http, "--peer-bind", "127.0.0.1"}));
  };
  const auto first = start(0, "127.0.0.1:" + std::to_string(port));
  REQUIRE(first);
  const auto page = [&](const std::string& path) { return runtime::http_get("127.0.0.1", port, path); };
  REQUIRE(wait_until([&] { return static_cast<bool>(page("/livez")); }, 30s));
  REQUIRE(wait_until([&] { return contains(page("/readyz").error().message, "waiting for"); }, 30s));
  CHECK(contains(page("/readyz").error().message, " 503"));
  const auto second = start(1, "off");
  REQUIRE(second);
  CHECK(wait_until([&] { return static_cast<bool>(page("/readyz")); }, 60s));
  CHECK(page("/livez"));
}

TEST_CASE("Program: validate --environment finds an interface that is not there") {
  const TempDir folder;
  const auto broker = start_broker("t", "rows:2");
  const auto file =
      folder
          .write("device.toml",
                 "version = 1\n[job]\nname = \"t\"\ndevices = 2\n[source]\ntopics = [\"rows\"]\n"
                 "[model]\nname = \"linear\"\n")
          .string();
  const auto check = [&](const std::string& interface) {
    return rivulet_run({"validate", file, "--environment", "--brokers", broker.address, "--http", "off",
                        "--data-dir", folder.path().string(), "--peer-bind", interface});
  };
  CHECK(check("lo").status.code == 0);
  const auto said = check("eth77");
  CHECK(said.status.code == 69);
  CHECK(contains(said.output, "sync.bind = \"eth77\""));
}

TEST_CASE("Program: a broker that is not there is exit 69 within seconds, and named") {
  const TempDir folder;
  const auto address = "127.0.0.1:" + std::to_string(free_port());
  const auto file =
      folder.write("device.toml", "version = 1\n[job]\nname = \"t\"\n[model]\nname = \"linear\"\n").string();
  const auto said = rivulet_run({"validate", file, "--environment", "--brokers", address, "--topic", "t",
                                 "--http", "off", "--data-dir", (folder.path() / "data").string()},
                                30s);
  CHECK_FALSE(said.timed_out);
  CHECK(said.status.code == 69);
  CHECK(contains(said.output, "fail"));
  CHECK(contains(said.output, address));
}

TEST_CASE("Program: the broker says its address first, its limits, and ends with a signal") {
  auto broker = start_broker("t", "rows:2");
  CHECK(contains(broker.process->output(), "topic rows with 2 partitions"));
  CHECK(contains(broker.process->output(), "topic rivulet.t.control with 1 partition\n"));
  CHECK(contains(broker.process->output(), "limits:"));
  broker.process->send_signal(SIGTERM);
  const auto ended = broker.process->wait(10s);
  REQUIRE(ended);
  CHECK(ended->code == 0);
}

TEST_CASE("Program: the broker ends with its input if asked to") {
  const auto ended = rivulet_run({"broker", "--job", "t", "--topic", "rows:1", "--until-eof"}, 20s);
  CHECK_FALSE(ended.timed_out);
  CHECK(ended.status.code == 0);
}

TEST_CASE("Program: what feed plays, peek shows, again and again, from where it is told") {
  auto broker = start_broker("t", "rows:2");
  const auto fed = rivulet_run({"feed", images, "--brokers", broker.address, "--topic", "rows", "--rates",
                                "200,100", "--seconds", "2", "--json"});
  REQUIRE(fed.status.code == 0);
  const auto result = nlohmann::json::parse(last_line(fed.output));
  CHECK(result["records"].get<int>() >= 500);
  CHECK(result["records"].get<int>() <= 700);
  REQUIRE(result["per_partition"].size() == 2);
  const double ratio = result["per_partition"][0].get<double>() / result["per_partition"][1].get<double>();
  CHECK(ratio == doctest::Approx(2).epsilon(0.1));

  const std::vector<std::string> peek = {"peek", "rows", "--brokers", broker.address, "--rows", "3"};
  const auto seen = rivulet_run(peek);
  CHECK(seen.status.code == 0);
  CHECK(contains(seen.output, "features [1, 28, 28] from -0.4242 to"));
  CHECK(contains(seen.output, "target "));
  CHECK(contains(seen.output, "3 rows shown, 0 dropped; no offset was moved"));
  CHECK(rivulet_run(peek).output == seen.output);  // no offset was moved

  auto at = peek;
  at.insert(at.end(), {"--from", "17", "--partitions", "1", "--json"});
  const auto seventeen = rivulet_run(at);
  const auto row = nlohmann::json::parse(first_line(seventeen.output));
  CHECK(row["offset"] == 17);
  CHECK(row["partition"] == 1);
  CHECK(row["features"].size() == 784);

  auto newest = peek;
  newest.insert(newest.end(), {"--from", "latest", "--partitions", "0", "--json"});
  const auto last = nlohmann::json::parse(last_line(rivulet_run(newest).output));
  CHECK(last["offset"].get<int>() + 1 == result["per_partition"][0].get<int>());
}

TEST_CASE("Program: peek ends at the end of the topic, and says why rows are dropped") {
  auto broker = start_broker("t", "rows:1");
  const TempDir folder;
  const auto data =
      folder
          .write("rows.jsonl", "{\"a\": 1, \"b\": 2, \"y\": 0}\n{\"a\": 1}\n{\"a\": 3, \"b\": 4, \"y\": 9}\n")
          .string();
  REQUIRE(rivulet_run({"feed", data, "--brokers", broker.address, "--topic", "rows", "--rates", "1000"})
              .status.code == 0);
  const auto config = folder
                          .write("device.toml", R"(version = 1
[job]
name = "t"
[decode]
format = "json"
json = { features = ["a", "b"], target = "y" }
[model]
name = "linear"
classes = 3
)")
                          .string();
  const auto seen = rivulet_run({"peek", "rows", "--config", config, "--brokers", broker.address});
  CHECK(seen.status.code == 0);
  CHECK(contains(seen.output, "target 0"));
  CHECK(contains(seen.output, "dropped: missing_field"));
  CHECK(contains(seen.output, "dropped: bad_label"));
  CHECK(contains(seen.output, "1 rows shown, 2 dropped"));
  const auto twice = rivulet_run({"peek", "rows", "--partitions", "0,0", "--brokers", broker.address});
  CHECK(twice.status.code == 2);
  CHECK(contains(twice.errors, "--partitions: 0 is named twice"));
  const auto nowhere = rivulet_run({"peek", "other", "--brokers", broker.address});
  CHECK(nowhere.status.code == 69);
  CHECK(contains(nowhere.errors, "other"));
}

TEST_CASE("Program: a signal ends feed with what it did so far") {
  auto broker = start_broker("t", "rows:1");
  auto feed = Process::start(rivulet_with({"feed", images, "--brokers", broker.address, "--topic", "rows",
                                           "--rates", "100", "--repeat", "--json"}));
  REQUIRE(feed);
  REQUIRE(feed.value()->wait_for_output("records", 20s));
  feed.value()->send_signal(SIGINT);
  const auto ended = feed.value()->wait(10s);
  REQUIRE(ended);
  CHECK(ended->code == 0);
  CHECK(nlohmann::json::parse(last_line(feed.value()->output())).contains("records"));
}

TEST_CASE("Program: one device alone trains from the broker and says so in one object") {
  auto broker = start_broker("alone", "rows:1");
  const TempDir folder;
  const auto config = folder
                          .write("device.toml",
                                 "version = 1\n[job]\nname = \"alone\"\ndevices = 1\n[source]\n"
                                 "topics = [\"rows\"]\n[model]\nname = \"linear\"\n")
                          .string();
  auto feed = Process::start(rivulet_with({"feed", images, "--brokers", broker.address, "--topic", "rows",
                                           "--rates", "400", "--seconds", "30", "--job", "alone", "--pace"}));
  REQUIRE(feed);
  const auto said =
      rivulet_run({"run", "--config", config, "--brokers", broker.address, "--data-dir",
                   (folder.path() / "data").string(), "--http", "off", "--stop-after", "rows=800", "--json"});
  INFO(said.errors);
  CHECK(said.status.code == 0);
  const auto summary = nlohmann::json::parse(last_line(said.output));
  REQUIRE(summary["devices"].size() == 1);
  CHECK(summary["devices"][0]["rows_trained"].get<int>() >= 800);
  CHECK(summary["parameters_equal"] == true);
}

TEST_CASE("Program: simulate trains on real images in virtual time: same seed, same bytes; another, others") {
  const auto simulate = [](const std::string& seed) {
    const auto said = rivulet_run({"simulate", "--data", images, "--model", "linear", "--rates",
                                   "800,400,200,100", "--seed", seed, "--stop-after", "rounds=60",
                                   "--latency", "5ms", "--bandwidth", "20", "--json"});
    INFO(said.errors);
    REQUIRE(said.status.code == 0);
    return nlohmann::json::parse(last_line(said.output));
  };
  const auto summary = simulate("3");
  CHECK(summary["rounds"] == 60);
  CHECK(summary["parameters_equal"] == true);
  CHECK(summary["digests_compared"].get<int>() >= 4 * 60);
  CHECK(summary["accuracy"].get<double>() > 0.6);  // of the 10 000 test images, after six seconds of rows
  REQUIRE(summary["devices"].size() == 4);
  for (const auto& device : summary["devices"]) {
    for (const char* key : {"id", "rows_consumed", "rows_trained", "rows_waiting", "rows_dropped",
                            "stream_rate", "batch_mean", "compute_s", "wait_s", "sync_s", "cpu_s",
                            "bytes_sent", "bytes_received", "max_rss_bytes", "first_step_s", "digest"}) {
      CAPTURE(key);
      CHECK(device.contains(key));
    }
    CHECK(device["digest"] == summary["devices"][0]["digest"]);
    CHECK(device["bytes_sent"].get<double>() > 0);
  }
  CHECK(summary["devices"][0]["rows_trained"].get<int>() >
        6 * summary["devices"][3]["rows_trained"].get<int>());
  CHECK(simulate("3") == summary);
  CHECK(simulate("4")["devices"][0]["digest"] != summary["devices"][0]["digest"]);
}

TEST_CASE("Program: made-up rows have the shape of the job's own, whatever their format") {
  const auto sensors = std::string(RIVULET_SOURCE_DIR "/examples/sensors-json/device.toml");
  const auto simulated = rivulet_run({"simulate", "--config", sensors, "--devices", "2", "--rates", "50",
                                      "--stop-after", "rounds=5", "--json"});
  INFO(simulated.errors);
  CHECK(simulated.status.code == 0);
  CHECK(nlohmann::json::parse(last_line(simulated.output))["rounds"] == 5);
  const TempDir folder;
  const auto alone =
      rivulet_run({"run", "--config", sensors, "--set", "source.type=synthetic", "--devices", "1", "--http",
                   "off", "--data-dir", folder.path().string(), "--stop-after", "rows=200", "--json"},
                  30s);
  INFO(alone.errors);
  REQUIRE(alone.status.code == 0);
  const auto device = nlohmann::json::parse(last_line(alone.output))["devices"][0];
  CHECK(device["rows_trained"].get<int>() >= 200);
  CHECK(device["rows_dropped"].empty());
}

TEST_CASE("Run: a result that cannot be written is a failure that names it") {
  const TempDir folder;
  std::filesystem::create_directories(folder.path() / "final.state" / "in the way");
  const auto config = std::string(RIVULET_SOURCE_DIR "/examples/mnist/device.toml");
  const auto out = rivulet_run(
      {"run", "--config", config, "--set", "source.type=synthetic", "--set", "model.name=linear", "--devices",
       "1", "--http", "off", "--data-dir", folder.path().string(), "--stop-after", "rounds=3"},
      30s);
  CHECK(out.status.code == 1);
  CHECK(contains(out.errors, "final.state"));
}

TEST_CASE("Run: started again it goes on from its checkpoint, and limits count from there") {
  const TempDir folder;
  const auto config = std::string(RIVULET_SOURCE_DIR "/examples/mnist/device.toml");
  const auto train = [&] {
    const auto out = rivulet_run({"run", "--config", config, "--set", "source.type=synthetic", "--set",
                                  "model.name=linear", "--devices", "1", "--http", "off", "--data-dir",
                                  folder.path().string(), "--stop-after", "rounds=7", "--json"},
                                 30s);
    INFO(out.errors);
    REQUIRE(out.status.code == 0);
    return nlohmann::json::parse(last_line(out.output))["rounds"].get<int>();
  };
  CHECK(train() == 7);
  CHECK(train() == 14);
  std::filesystem::remove_all(folder.path() / "checkpoints");
  CHECK(train() == 7);
}

TEST_CASE(
    "Checkpoint: a device's saved states are listed, shown, verified and measured; a damaged one is named") {
  const TempDir folder;
  const auto config = std::string(RIVULET_SOURCE_DIR "/examples/mnist/device.toml");
  const auto rivulet_on = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--config", config, "--set", "model.name=linear", "--data-dir",
                                       folder.path().string()});
    return rivulet_run(arguments, 60s);
  };
  const auto none = rivulet_on({"checkpoint", "ls"});
  CHECK(none.status.code == 0);
  CHECK(none.output.empty());
  REQUIRE(rivulet_on({"run", "--set", "source.type=synthetic", "--devices", "1", "--http", "off",
                      "--stop-after", "rounds=9"})
              .status.code == 0);
  const auto listed = nlohmann::json::parse(rivulet_on({"checkpoint", "ls", "--json"}).output);
  REQUIRE(listed.size() == 1);
  CHECK(listed[0]["step"] == 9);
  const auto file = listed[0]["file"].get<std::string>();
  const auto shown = nlohmann::json::parse(rivulet_on({"checkpoint", "show", file, "--json"}).output);
  CHECK(shown["digest"] == listed[0]["digest"]);
  REQUIRE(shown["partitions"].size() == 1);
  CHECK(shown["partitions"][0]["topic"] == "mnist");
  CHECK(shown["partitions"][0]["rows_trained"] == shown["rows"]);
  CHECK(shown["partitions"][0]["next"] == shown["rows"]);  // one row a record, from offset 0, none dropped
  const auto verified = rivulet_on({"checkpoint", "verify"});
  CHECK(verified.status.code == 0);
  CHECK(contains(verified.output, "ok  "));
  const auto measured = rivulet_on({"evaluate", file, images, "--json"});
  REQUIRE(measured.status.code == 0);
  CHECK(nlohmann::json::parse(measured.output)["rows"] == 10'000);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  for (const std::string what : {"show", "verify"}) {
    const auto damaged = rivulet_on({"checkpoint", what, file});
    CHECK(damaged.status.code == 1);
    CHECK(contains(damaged.errors, file));
  }
}

TEST_CASE("Run: a model that diverges is said to, once, not only counted") {
  const TempDir folder;
  const auto config = std::string(RIVULET_SOURCE_DIR "/examples/mnist/device.toml");
  const auto out =
      rivulet_run({"run", "--config", config, "--set", "source.type=synthetic", "--set", "model.name=linear",
                   "--set", "train.optimizer.lr=1e38", "--devices", "1", "--http", "off", "--data-dir",
                   folder.path().string(), "--stop-after", "seconds=2"},
                  30s);
  const std::string words = "has the model diverged?";
  const auto first = out.errors.find(words);
  REQUIRE(first != std::string::npos);
  CHECK(out.errors.find(words, first + 1) == std::string::npos);
}

TEST_CASE("Program: doctor looks at this machine and this binary") {
  const TempDir folder;
  const auto said =
      rivulet_run({"doctor", "--data-dir", (folder.path() / "data").string(), "--http", "off", "--json"});
  CHECK(said.status.code == 0);
  bool gloo = false;
  for (const auto& check : nlohmann::json::parse(last_line(said.output))) {
    CAPTURE(check.dump());
    CHECK(check["level"] != "fail");
    gloo = gloo || check["name"] == "Gloo copies";
  }
  CHECK(gloo);
}

TEST_CASE("Run: a dry run ends at its limit and leaves nothing behind") {
  const TempDir folder;
  const auto config = std::string(RIVULET_SOURCE_DIR "/examples/mnist/device.toml");
  for (const std::string limit : {"rows=300", "rounds=4"}) {
    INFO(limit);
    const auto data_dir = folder.path() / limit;
    const auto out = rivulet_run({"run", "--config", config, "--set", "source.type=synthetic", "--set",
                                  "source.rate=500", "--set", "model.name=linear", "--devices", "1", "--http",
                                  "off", "--data-dir", data_dir.string(), "--dry-run", "--stop-after", limit},
                                 30s);
    INFO(out.errors);
    CHECK_FALSE(out.timed_out);
    CHECK(out.status.code == 0);
    for (const auto& entry : std::filesystem::directory_iterator(data_dir))
      CHECK(entry.path().filename() == "lock");
  }
}

TEST_CASE(
    "Run: one data directory belongs to one process, and a failed start leaves the earlier state alone") {
  const TempDir folder;
  const auto config = std::string(RIVULET_SOURCE_DIR "/examples/mnist/device.toml");
  const std::vector<std::string> job{"run",
                                     "--config",
                                     config,
                                     "--set",
                                     "source.type=synthetic",
                                     "--set",
                                     "source.rate=500",
                                     "--set",
                                     "model.name=linear",
                                     "--devices",
                                     "1",
                                     "--http",
                                     "off",
                                     "--data-dir",
                                     folder.path().string()};
  const auto with = [&](const std::vector<std::string>& more) {
    auto all = job;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  REQUIRE(rivulet_run(with({"--stop-after", "rounds=3"}), 30s).status.code == 0);
  const auto state = folder.path() / "final.state";
  REQUIRE(std::filesystem::exists(state));
  const auto written = std::filesystem::last_write_time(state);
  auto holder = Process::start(rivulet_with(with({})));
  REQUIRE(holder);
  std::this_thread::sleep_for(1s);
  const auto second = rivulet_run(with({"--stop-after", "rounds=3"}), 30s);
  CHECK(second.status.code == 78);
  CHECK(contains(second.errors, "is in use by another rivulet run"));
  holder.value()->send_signal(SIGKILL);
  REQUIRE(holder.value()->wait(10s));
  const auto failed =
      rivulet_run(with({"--set", "source.type=kafka", "--brokers", "127.0.0.1:1", "--topic", "t"}), 30s);
  CHECK(failed.status.code == 69);
  CHECK_FALSE(contains(failed.output, "final state"));
  CHECK(std::filesystem::last_write_time(state) == written);
}

TEST_CASE("Feed: no record is a failure that names the data") {
  const TempDir folder;
  const auto empty = (folder.path() / "empty.jsonl").string();
  std::ofstream(empty) << "\n";
  const auto broker = start_broker("j", "t:1");
  const auto out = rivulet_run({"feed", empty, "--brokers", broker.address, "--topic", "t"}, 30s);
  CHECK(out.status.code == 1);
  CHECK(contains(out.errors, empty));
}

TEST_CASE("Output that cannot be written is a failure") {
  ProcessOptions options;
  options.command = {"sh", "-c", "exec \"$0\" version > /dev/full", binary};
  const auto out = run(options, 10s);
  CHECK(out.status.code == 1);
  CHECK(contains(out.errors, "cannot write to standard output"));
}
