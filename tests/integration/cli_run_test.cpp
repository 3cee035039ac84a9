// Effects and results of `rivulet run`.
#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/status/http/http_server.h"
#include "tests/support/places.h"
#include "tests/support/process.h"
#include "tests/support/rivulet_program.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

TEST_CASE("Program: one device alone trains from the broker and says so in one object") {
  auto broker = start_broker("alone", "rows:1");
  const TempDir folder;
  const auto config = folder
                          .write("device.toml",
                                 "version = 1\n[job]\nname = \"alone\"\ndevices = 1\n[source]\n"
                                 "topics = [\"rows\"]\n[model]\nname = \"linear\"\n")
                          .string();
  auto feed =
      Process::start(rivulet_with({"feed", mnist_images, "--brokers", broker.address, "--topic", "rows",
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
    const auto said = rivulet_run({"simulate", "--data", mnist_images, "--model", "linear", "--rates",
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

TEST_CASE("Program: simulate looks at held-out rows as often as the configuration says") {
  const TempDir folder;
  const auto looks = [&](const std::string& every) {
    const auto said = rivulet_run({"simulate", "--data", mnist_images, "--model", "linear", "--rates", "50",
                                   "--stop-after", "seconds=9", "--set", "evaluate.held_out.every=" + every,
                                   "--csv", folder.path().string()});
    INFO(said.errors);
    CHECK(said.status.code == 0);
    std::ifstream table(folder.path() / "accuracy.csv");
    return std::count(std::istreambuf_iterator<char>(table), {}, '\n');
  };
  // A heading, one line per update, and one at the end.
  CHECK(looks("2s") == 1 + 4 + 1);
  CHECK(looks("5s") == 1 + 1 + 1);
}

TEST_CASE("Program: made-up rows have the shape of the job's own, whatever their format") {
  const auto sensors = source_path("examples/sensors-json/device.toml");
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
  const auto config = source_path("examples/mnist/device.toml");
  const auto out = rivulet_run(
      {"run", "--config", config, "--set", "source.type=synthetic", "--set", "model.name=linear", "--devices",
       "1", "--http", "off", "--data-dir", folder.path().string(), "--stop-after", "rounds=3"},
      30s);
  CHECK(out.status.code == 1);
  CHECK(contains(out.errors, "final.state"));
}

TEST_CASE(
    "Run: in the folder of another job or device nothing is changed, and the message names whose it is") {
  namespace fs = std::filesystem;
  const TempDir folder;
  const auto data = folder.path() / "data";
  const auto config = source_path("examples/mnist/device.toml");
  const auto train = [&](const std::string& job, const std::string& id, std::vector<std::string> more = {}) {
    std::vector<std::string> words{"run",
                                   "--config",
                                   config,
                                   "--set",
                                   "source.type=synthetic",
                                   "--set",
                                   "model.name=linear",
                                   "--set",
                                   "job.name=" + job,
                                   "--id",
                                   id,
                                   "--devices",
                                   "1",
                                   "--http",
                                   "off",
                                   "--data-dir",
                                   data.string(),
                                   "--stop-after",
                                   "rounds=7"};
    words.insert(words.end(), more.begin(), more.end());
    return rivulet_run(words, 30s);
  };
  const auto all = [&] {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(data))
      files[entry.path().string()] = entry.is_regular_file() ? read_file(entry.path()) : "";
    return files;
  };
  REQUIRE(train("first", "a").status.code == 0);
  const auto before = all();
  CHECK(before.size() > 3);
  for (const auto& more : std::vector<std::vector<std::string>>{{}, {"--new-run"}, {"--dry-run"}}) {
    const auto other = train("second", "a", more);
    CHECK(other.status.code == 78);
    CHECK(contains(other.errors, "belongs to device a of job first"));
  }
  CHECK(train("first", "b").status.code == 78);
  CHECK(all() == before);
  // Without its owner file the folder still belongs to the other job, as its checkpoints show.
  fs::remove(data / "owner");
  const auto unmarked = train("second", "a");
  CHECK(unmarked.status.code == 78);
  CHECK(contains(unmarked.errors, "contains a checkpoint of job first"));
  CHECK(all().size() == before.size() - 1);
  CHECK(train("first", "a").status.code == 0);
}

TEST_CASE("Run: started again it goes on from its checkpoint, and limits count from there") {
  const TempDir folder;
  const auto config = source_path("examples/mnist/device.toml");
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

TEST_CASE("Run: who comes back and has nothing to train leaves the agreed state all the same") {
  const TempDir folder;
  const auto port = std::to_string(free_port());
  const std::vector<std::string> job = {"run",
                                        "--config",
                                        source_path("examples/mnist/device.toml"),
                                        "--set",
                                        "source.type=synthetic",
                                        "--set",
                                        "model.name=linear",
                                        "--devices",
                                        "1",
                                        "--http",
                                        "127.0.0.1:" + port,
                                        "--data-dir",
                                        folder.path().string(),
                                        "--json"};
  const auto with = [&](const std::vector<std::string>& more) {
    auto all = job;
    all.insert(all.end(), more.begin(), more.end());
    return rivulet_with(all);
  };
  const auto first = run(with({"--stop-after", "rounds=7"}), 30s);
  REQUIRE(first.status.code == 0);
  const auto state = folder.path() / "final.state";
  REQUIRE(std::filesystem::remove(state));
  const auto back = Process::start(with({"--set", "source.rate=0.001"}));
  REQUIRE(back);
  REQUIRE(wait_until([&] { return bool(runtime::http_get("127.0.0.1", std::stoi(port), "/readyz")); }, 30s));
  back.value()->send_signal(SIGTERM);
  REQUIRE(back.value()->wait(20s));
  const auto summary = nlohmann::json::parse(last_line(back.value()->output()));
  CHECK(summary["devices"][0]["rows_trained"] == 0);
  CHECK(summary["devices"][0]["digest"] ==
        nlohmann::json::parse(last_line(first.output))["devices"][0]["digest"]);
  CHECK(std::filesystem::exists(state));
}

TEST_CASE(
    "Checkpoint: a device's saved states are listed, shown, verified and measured; a damaged one is named") {
  const TempDir folder;
  const auto config = source_path("examples/mnist/device.toml");
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
  CHECK(shown["partitions"][0]["next"] == shown["rows"]);  // one row per record, from offset 0, none dropped
  const auto verified = rivulet_on({"checkpoint", "verify"});
  CHECK(verified.status.code == 0);
  CHECK(contains(verified.output, "ok  "));
  const auto measured = rivulet_on({"evaluate", file, mnist_images, "--json"});
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
  const auto config = source_path("examples/mnist/device.toml");
  const auto out =
      rivulet_run({"run", "--config", config, "--set", "source.type=synthetic", "--set", "model.name=linear",
                   "--set", "train.optimizer.lr=1e38", "--devices", "1", "--http", "off", "--data-dir",
                   folder.path().string(), "--stop-after", "seconds=2"},
                  30s);
  const std::string words = "the model may have diverged";
  const auto first = out.errors.find(words);
  REQUIRE(first != std::string::npos);
  CHECK(out.errors.find(words, first + 1) == std::string::npos);
}

TEST_CASE("Run: a regression tells its loss and no accuracy, on no page, in no metric and not in the end") {
  const TempDir folder;
  const auto run_with = [&](const std::string& loss) {
    const int port = free_port();
    const auto device = Process::start(rivulet_with(
        {"run", "--config", source_path("examples/sensors-json/device.toml"), "--set",
         "source.type=synthetic", "--set", "source.rate=500", "--set", "model.name=linear", "--set",
         "train.loss=" + loss, "--set", "train.optimizer.lr=0.001", "--http",
         "127.0.0.1:" + std::to_string(port), "--data-dir", (folder.path() / loss).string(), "--json"}));
    REQUIRE(device);
    const auto page = [&](const std::string& path) {
      const auto answer = runtime::http_get("127.0.0.1", port, path);
      return answer ? answer.value() : std::string();
    };
    std::string pages;  // the loss moves around 1 at first, and between two pages
    const auto below_one = [&] {
      pages = page("/api/v1/status") + page("/metrics") + page("/");
      return contains(pages, "\"loss\":0.") && contains(pages, "rivulet_train_loss{window=\"average\"} 0.");
    };
    REQUIRE(wait_until(below_one, 30s));
    device.value()->send_signal(SIGTERM);
    REQUIRE(device.value()->wait(20s));
    return std::pair(pages, nlohmann::json::parse(last_line(device.value()->output())));
  };
  const auto [numbers, of_numbers] = run_with("mse");
  CHECK(contains(numbers, "\"accuracy\":null,\"held_out_accuracy\":null"));
  CHECK(contains(numbers, "rivulet_train_loss{window=\"average\"} 0."));
  CHECK(contains(numbers, "rivulet_eval_score{metric=\"own_mean_absolute_error\"}"));
  CHECK_FALSE(contains(numbers, "accuracy\"}"));
  CHECK_FALSE(contains(numbers, "id=\"accuracy\""));
  CHECK(of_numbers["accuracy"].is_null());
  const auto measured = rivulet_run({"evaluate", "--config", source_path("examples/sensors-json/device.toml"),
                                     "--set", "model.name=linear", "--set", "train.loss=mse",
                                     (folder.path() / "mse" / "final.state").string(),
                                     source_path("examples/sensors-json/readings.jsonl")});
  INFO(measured.errors);
  CHECK(measured.output.starts_with("mean loss "));
  const auto [classes, of_classes] = run_with("cross_entropy");
  CHECK(contains(classes, "rivulet_eval_score{metric=\"prequential_accuracy\"}"));
  CHECK(contains(classes, "id=\"accuracy\""));
  CHECK(of_classes["accuracy"].is_number());
}

namespace {

/// /metrics of a single device with very few rows, once it is ready.
std::string metrics_when_ready(const std::string& source, const std::string& data_dir,
                               const std::vector<std::string>& more) {
  const int port = free_port();
  std::vector<std::string> arguments{"run",
                                     "--config",
                                     source_path("examples/mnist/device.toml"),
                                     "--set",
                                     "source.type=" + source,
                                     "--set",
                                     "source.rate=0.001",
                                     "--set",
                                     "model.name=linear",
                                     "--devices",
                                     "1",
                                     "--http",
                                     "127.0.0.1:" + std::to_string(port),
                                     "--data-dir",
                                     data_dir};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const auto device = Process::start(rivulet_with(arguments));
  REQUIRE(device);
  std::string metrics;
  const auto look = [&] {
    const auto answer = runtime::http_get("127.0.0.1", port, "/metrics");
    metrics = answer ? answer.value() : "";
    return contains(metrics, "rivulet_ready 1");
  };
  REQUIRE(wait_until(look, 30s));
  return metrics;
}

}  // namespace

TEST_CASE("Run: what nobody has measured yet is not a number in the metrics, and not 0") {
  const TempDir folder;
  const auto metrics_with = [&](const std::string& source, const std::vector<std::string>& more) {
    return metrics_when_ready(source, (folder.path() / source).string(), more);
  };
  const auto before_rows = metrics_with("synthetic", {});
  for (const char* series : {"train_loss{window=\"last\"}", "train_loss{window=\"average\"}",
                             "eval_score{metric=\"prequential_accuracy\"}"})
    CHECK_MESSAGE(contains(before_rows, "rivulet_" + std::string(series) + " Nan\n"), before_rows);
  const auto before_look = metrics_with(
      "file", {"--set", "source.path=" + mnist_images, "--set", "evaluate.held_out.path=" + mnist_images,
               "--set", "evaluate.held_out.every=60s"});
  CHECK_MESSAGE(contains(before_look, "rivulet_eval_score{metric=\"held_out_accuracy\"} Nan\n"), before_look);
}

TEST_CASE("Run: a dry run ends at its limit and leaves nothing behind") {
  const TempDir folder;
  const auto config = source_path("examples/mnist/device.toml");
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
  const auto config = source_path("examples/mnist/device.toml");
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
  REQUIRE(holder.value()->wait_for_output("msg=starting", 30s));  // it has locked the folder
  const auto second = rivulet_run(with({"--stop-after", "rounds=3"}), 30s);
  CHECK(second.status.code == 78);
  CHECK(contains(second.errors, "is in use by another rivulet run"));
  holder.value()->send_signal(SIGKILL);
  REQUIRE(holder.value()->wait(10s));
  const auto failed = rivulet_run(with({"--set", "source.type=kafka", "--brokers", "127.0.0.1:1"}), 30s);
  CHECK(failed.status.code == 69);
  CHECK_FALSE(contains(failed.output, "final state"));
  CHECK(std::filesystem::last_write_time(state) == written);
}

TEST_CASE("Output that cannot be written is a failure") {
  ProcessOptions options;
  options.command = {"sh", "-c", "exec \"$0\" version > /dev/full", rivulet_binary()};
  const auto out = run(options, 10s);
  CHECK(out.status.code == 1);
  CHECK(contains(out.errors, "cannot write to standard output"));
}
