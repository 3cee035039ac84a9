#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/status/http/http_server.h"
#include "tests/support/kafka_client.h"
#include "tests/support/places.h"
#include "tests/support/rivulet_program.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

/// Clears a screen, in one byte and in two, hides the line before it, and begins a forged one.
const std::string hostile =
    "{\x1b[2J\x9b"
    "31m\xc2\x9b"
    "7m\r\nerror: forged";

void check_harmless(const std::string& text) {
  CAPTURE(text);
  for (const char* obeyed : {"\x1b", "\r", "\x9b", "\x7f"}) CHECK_FALSE(contains(text, obeyed));
  CHECK_FALSE(contains("\n" + text, "\nerror: forged"));
}

const std::vector<std::string> reads_json = {"--set", "decode.format=json", "--set",
                                             R"(decode.json={features=["x"], target="y"})"};

std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

TEST_CASE("Program: control characters of a record never reach the terminal") {
  const TempDir folder;
  const auto broker = start_broker("t", "rows:1");
  REQUIRE(produce(broker.address, "rows", {{hostile}}));
  const auto peek = with({"peek", "rows", "--brokers", broker.address, "--rows", "1"}, reads_json);
  const auto shown = rivulet_run(peek);
  CHECK(shown.status.code == 0);
  CHECK(contains(shown.output, "dropped: malformed"));
  CHECK(contains(shown.output, "{\\u001b[2J\\x9b31m\\u009b7m\\r\\nerror: forged"));
  check_harmless(shown.output);
  const auto json = rivulet_run(with(peek, {"--json"}));
  check_harmless(json.output);
  CHECK(nlohmann::json::parse(json.output)["dropped"] == "malformed");

  const auto stopped = rivulet_run(with({"run",
                                         "--brokers",
                                         broker.address,
                                         "--topic",
                                         "rows",
                                         "--partitions",
                                         "0",
                                         "--devices",
                                         "1",
                                         "--id",
                                         "a",
                                         "--data-dir",
                                         (folder.path() / "a").string(),
                                         "--http",
                                         "off",
                                         "--set",
                                         "job.name=t",
                                         "--set",
                                         "model.name=linear",
                                         "--set",
                                         "decode.on_error=stop"},
                                        reads_json));
  CHECK(stopped.status.code != 0);
  CHECK(contains(stopped.errors, "decode.on_error = \"stop\""));
  check_harmless(stopped.errors);
}

TEST_CASE("Program: a reader that has seen enough ends top quietly") {
  const auto server = runtime::HttpServer::start(
      "127.0.0.1:0",
      {[] { return std::string(); }, [](std::string&) { return true; }, [](std::string&) { return true; },
       [] { return std::string(R"({"id":"a","state":"training","world":1,"view":1})"); },
       [] { return std::string("{}"); }, [](const std::string&) { return std::string(); }});
  REQUIRE(server);
  ProcessOptions options;
  options.command = {"bash", "-c",
                     "set -o pipefail; \"$0\" top 127.0.0.1:" + std::to_string(server.value()->port()) +
                         " --interval 100ms | head -n 1",
                     rivulet_binary()};
  const auto ended = run(options, 30s);
  CHECK_FALSE(ended.timed_out);
  CHECK(ended.status.code == 0);
  CHECK(contains(ended.output, "a: training"));
  CHECK(ended.errors.empty());
}

TEST_CASE("Program: a file behind --set is the file, also when an option follows") {
  const TempDir folder;
  const auto file =
      folder
          .write("device.toml",
                 "version = 1\n[job]\nname = \"t\"\n[decode.raw]\nshape = [3]\n[source]\n"
                 "topics = [\"t\"]\n[source.kafka.properties]\n\"bootstrap.servers\" = \"h:1\"\n")
          .string();
  const auto said = rivulet_run({"validate", "--set", "model.name=linear", file, "--json"});
  CHECK_MESSAGE(said.status.code == 0, said.errors);
  CHECK(nlohmann::json::parse(said.output)["valid"] == true);
}

TEST_CASE("Program: the token's file is checked by validate, and its content is shown nowhere") {
  const TempDir folder;
  const auto token = folder.write("token", "correct-horse-battery-staple-0123456789\n").string();
  const auto file = folder
                        .write("device.toml",
                               "version = 1\n[job]\nname = \"t\"\n[decode.raw]\nshape = [3]\n[model]\n"
                               "name = \"linear\"\n[source]\ntopics = [\"t\"]\n[source.kafka.properties]\n"
                               "\"bootstrap.servers\" = \"127.0.0.1:1\"\n[http]\nlisten = \"127.0.0.1:0\"\n"
                               "token_file = \"${file:" +
                                   token + "}\"\n")
                        .string();
  for (const std::vector<std::string>& command : {std::vector<std::string>{"validate", file},
                                                  {"validate", file, "--json"},
                                                  {"config", "show", "--config", file}}) {
    const auto said = rivulet_run(command);
    CAPTURE(said.output);
    CAPTURE(said.errors);
    CHECK(said.status.code == (command[0] == "config" ? 0 : 78));
    CHECK_FALSE(contains(said.output + said.errors, "horse"));
    CHECK(contains(said.output + said.errors, "${file:" + token + "}"));
  }
  const auto placed = rivulet_run({"validate", file});
  CHECK(contains(placed.errors, file + ":14:1: error: http.token_file"));
  const auto short_one = folder.write("short", "abc\n").string();
  const auto refused = rivulet_run({"validate", file, "--set", "http.token_file=" + short_one});
  CHECK(refused.status.code == 78);
  CHECK(contains(refused.errors, "must contain one line of"));
  CHECK(rivulet_run({"validate", file, "--set", "http.token_file=" + token}).status.code == 0);
}

TEST_CASE("Program: a device without its broker is not ready, and says why") {
  const TempDir folder;
  auto broker = start_broker("t", "rows:1");
  const std::string http = "127.0.0.1:" + std::to_string(free_port());
  const auto device = Process::start(
      rivulet_with({"run", "--brokers", broker.address, "--topic", "rows", "--partitions", "0", "--devices",
                    "1", "--id", "a", "--data-dir", (folder.path() / "a").string(), "--http", http, "--set",
                    "job.name=t", "--set", "model.name=linear"}));
  REQUIRE(device);
  const std::vector<std::string> asks = {"status", http, "--ready"};
  REQUIRE(wait_until([&] { return rivulet_run(asks).status.code == 0; }, 60s));
  broker.process->send_signal(SIGKILL);
  REQUIRE(wait_until([&] { return rivulet_run(asks).status.code == 1; }, 60s));
  CHECK(contains(rivulet_run(asks).errors, "no broker of " + broker.address + " can be reached"));
}
