#include <doctest/doctest.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/clock.h"
#include "runtime/status/http/http_server.h"
#include "tests/support/process.h"
#include "tests/support/raw_http.h"
#include "tests/support/rivulet_program.h"
#include "tests/support/scripted_server.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

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
  CHECK(last_line(said.output) == file + " has no errors, but cannot run here: 1 check failed");
  CHECK_FALSE(std::filesystem::exists(folder.path() / "data"));  // the command is read-only
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
  const auto fed = rivulet_run({"feed", mnist_images, "--brokers", broker.address, "--topic", "rows",
                                "--rates", "200,100", "--seconds", "2", "--json"});
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
  CHECK(contains(seen.output, "3 rows shown, 0 dropped; no offset was committed"));
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
  CHECK(contains(twice.errors, "--partitions: 0 is given twice"));
  const auto nowhere = rivulet_run({"peek", "other", "--brokers", broker.address});
  CHECK(nowhere.status.code == 69);
  CHECK(contains(nowhere.errors, "other"));
}

TEST_CASE("Program: a signal ends feed with what it did so far") {
  auto broker = start_broker("t", "rows:1");
  auto feed = Process::start(rivulet_with({"feed", mnist_images, "--brokers", broker.address, "--topic",
                                           "rows", "--rates", "100", "--repeat", "--json"}));
  REQUIRE(feed);
  REQUIRE(feed.value()->wait_for_output("records", 20s));
  feed.value()->send_signal(SIGINT);
  const auto ended = feed.value()->wait(10s);
  REQUIRE(ended);
  CHECK(ended->code == 0);
  CHECK(nlohmann::json::parse(last_line(feed.value()->output())).contains("records"));
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

TEST_CASE("Feed: no record is a failure that names the data") {
  const TempDir folder;
  const auto empty = (folder.path() / "empty.jsonl").string();
  std::ofstream(empty) << "\n";
  const auto broker = start_broker("j", "t:1");
  const auto out = rivulet_run({"feed", empty, "--brokers", broker.address, "--topic", "t"}, 30s);
  CHECK(out.status.code == 1);
  CHECK(contains(out.errors, empty));
}

TEST_CASE("Program: top ends with a signal while a device's answer trickles") {
  const std::string ok = "HTTP/1.1 200 OK\r\n\r\n";
  for (const int signal : {SIGINT, SIGTERM}) {
    const ScriptedServer device({ok + R"({"id":"b"})", ok + "{}"});
    const auto top = Process::start(rivulet_with({"top", device.address(), "--interval", "100ms"}));
    REQUIRE(top);
    REQUIRE(wait_until([&] { return device.trickles(); }, 20s));
    top.value()->send_signal(signal);
    const auto ended = top.value()->wait(3s);  // before its timeout for the answer
    REQUIRE(ended);
    CHECK(ended->code == 0);
    CHECK_FALSE(contains(top.value()->output(), "no answer"));
  }
}

TEST_CASE("Program: a secret in the wrong property is not repeated, and no command leaves a core") {
  const TempDir folder;
  const auto secret = folder.write("secret", "pa55-of-the-broker\n").string();
  const auto file = folder
                        .write("device.toml",
                               "version = 1\n[job]\nname = \"t\"\n[source]\ntopics = [\"t\"]\n"
                               "[source.kafka.properties]\n\"bootstrap.servers\" = \"h:1\"\n"
                               "\"security.protocol\" = \"${file:" +
                                   secret + "}\"\n")
                        .string();
  for (const auto& command : {std::vector<std::string>{"validate"}, {"run"}, {"peek", "t"}}) {
    auto arguments = command;
    arguments.insert(arguments.end(), {"--config", file});
    const auto said = rivulet_run(arguments);
    CHECK(said.status.code == 78);
    CHECK_MESSAGE(contains(said.errors, "Invalid value \"${file:" + secret + "}\""), said.errors);
    CHECK_FALSE(contains(said.errors + said.output, "pa55"));
  }
  const auto broker = start_broker("t", "rows:1");
  std::ifstream limits("/proc/" + std::to_string(broker.process->pid()) + "/limits");
  std::string core;
  while (std::getline(limits, core) && !core.starts_with("Max core file size")) {
  }
  CHECK_MESSAGE(core.find(" 0 ") != std::string::npos, core);
  CHECK(core.find("unlimited") == std::string::npos);
}

TEST_CASE("Program: who takes a page by the spoonful does not get all of it") {
  runtime::HttpServer::Pages pages;
  const std::string page(64 << 20, 'm');
  pages.metrics = [&] { return page; };
  const auto server = runtime::HttpServer::start("127.0.0.1:0", pages);
  REQUIRE(server);
  const int slow = connect_to(server.value()->port());
  REQUIRE(slow >= 0);
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
  send(slow, request.data(), request.size(), MSG_NOSIGNAL);
  const RealClock clock;
  const TimePoint begin = clock.now();
  std::size_t taken = 0;
  std::vector<char> spoon(64 << 10);  // 1.3 MB/s: all of it would take fifty seconds
  for (ssize_t n = 1; n != 0 && to_seconds(clock.now() - begin) < 20;) {
    n = recv(slow, spoon.data(), spoon.size(), MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN) break;  // cut off
    taken += n > 0 ? static_cast<std::size_t>(n) : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  close(slow);
  CHECK(to_seconds(clock.now() - begin) < testing::deadline_slack * 20);
  CHECK(taken > 0);
  CHECK(taken < page.size());
}
