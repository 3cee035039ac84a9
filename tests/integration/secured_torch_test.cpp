// The tutorial's commands on a Kafka with passwords, certificates and access lists; the errors when one of
// them is wrong; and that no output contains a secret.
#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "runtime/status/http/http_server.h"
#include "stream/open.h"
#include "tests/support/places.h"
#include "tests/support/rivulet_program.h"
#include "tests/support/secured_kafka.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

namespace fs = std::filesystem;

const std::string password = "pa55-of-the-broker-9Qx";
const std::string token = "t0ken-of-the-pages-7Kv2";

/// The example's readings in a topic that user `rivulet` may read, and the tutorial's configuration.
struct Job {
  Job() {
    auto started = SecuredKafka::start("rivulet", password);
    REQUIRE_MESSAGE(started, started.error().message);
    kafka = std::move(started).value();
    const auto& plain = kafka->server().brokers();
    REQUIRE(create_topic(plain, "readings", 1));
    std::ifstream lines(source_path("examples/sensors-json/readings.jsonl"));
    std::vector<TestRecord> records;
    for (std::string line; std::getline(lines, line);) records.push_back({line});
    REQUIRE(produce(plain, "readings", records));
    folder.write("password", password + "\n");
    folder.write("token", token + "\n");
  }
  void allow_all() {
    REQUIRE(kafka->allow({"--operation", "READ", "--operation", "DESCRIBE", "--topic", "readings"}));
    REQUIRE(kafka->allow({"--operation", "READ", "--operation", "WRITE", "--operation", "DESCRIBE",
                          "--operation", "CREATE", "--topic", "rivulet.pumps.control"}));
    REQUIRE(kafka->allow(
        {"--operation", "READ", "--group", "rivulet.pumps", "--resource-pattern-type", "prefixed"}));
  }
  [[nodiscard]] std::string config(const std::string& password_file = "password") const {
    std::ifstream example(source_path("examples/sensors-json/device.toml"));
    std::stringstream text;
    text << example.rdbuf();
    std::string all = text.str();
    const std::string old = "bootstrap.servers = \"localhost:9092\"\n";
    const auto at = all.find(old);
    REQUIRE(at != std::string::npos);
    all.replace(
        at, old.size(),
        "bootstrap.servers = \"" + kafka->brokers() +
            "\"\nsecurity.protocol = \"sasl_ssl\"\nsasl.mechanism = \"PLAIN\"\nsasl.username = \"rivulet\"\n"
            "sasl.password = \"${file:" +
            (folder.path() / password_file).string() + "}\"\nssl.ca.location = \"" + kafka->authority() +
            "\"\n");
    return folder.write("device.toml", all).string();
  }
  [[nodiscard]] std::vector<std::string> with(std::vector<std::string> arguments) const {
    for (const auto& more : {"--data-dir", "DATA"}) arguments.emplace_back(more);
    arguments.back() = (folder.path() / "data").string();
    return arguments;
  }
  TempDir folder;
  std::unique_ptr<SecuredKafka> kafka;
};

/// All files that it has written, as bytes.
std::string all_files_below(const fs::path& folder) {
  std::string all;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) all += read_file(entry.path());
  return all;
}

// In base64, as sent: "any:" and the token, and user and password of SASL PLAIN.
const std::string token_sent = "YW55OnQwa2VuLW9mLXRoZS1wYWdlcy03S3Yy";
const std::string password_sent = "AHJpdnVsZXQAcGE1NS1vZi10aGUtYnJva2VyLTlReA";

bool is_silent(const std::string& text) {
  return !contains(text, password) && !contains(text, token) && !contains(text, token_sent) &&
         !contains(text, password_sent);
}

void check_silent(const std::string& text) {
  CHECK(is_silent(text));
}

}  // namespace

TEST_CASE("Secured: the tutorial's way trains on a Kafka with passwords, certificates and access lists") {
  Job job;
  job.allow_all();
  const auto config = job.config();
  const auto valid = rivulet_run(job.with({"validate", config, "--environment", "--http", "off"}));
  CHECK_MESSAGE(valid.status.code == 0, valid.output << valid.errors);
  const auto peeked = rivulet_run({"peek", "readings", "--config", config, "--rows", "3"});
  CHECK_MESSAGE(peeked.status.code == 0, peeked.errors);
  const auto trained = rivulet_run(
      job.with({"run", "--config", config, "--http", "off", "--stop-after", "rows=1500", "--json"}), 120s);
  CHECK_MESSAGE(trained.status.code == 0, trained.errors);
  const auto books = rivulet_run(job.with({"ledger", "verify", "--config", config}));
  CHECK_MESSAGE(books.status.code == 0, books.output << books.errors);
  for (const auto* said : {&valid, &peeked, &trained, &books}) check_silent(said->output + said->errors);
}

TEST_CASE("Secured: a wrong password is named within seconds") {
  Job job;
  job.folder.write("wrong", "not-the-password-at-all\n");
  const auto refused =
      rivulet_run(job.with({"validate", job.config("wrong"), "--environment", "--http", "off"}), 60s);
  CHECK_FALSE(refused.timed_out);
  CHECK(refused.status.code == 69);
  CHECK_MESSAGE(contains(refused.output, "uthentication"), refused.output);
  CHECK_FALSE(contains(refused.output + refused.errors, "not-the-password"));
  const auto run = rivulet_run(job.with({"run", "--config", job.config("wrong"), "--http", "off"}), 60s);
  CHECK_FALSE(run.timed_out);
  CHECK(run.status.code == 69);
  CHECK_MESSAGE(contains(run.errors, "uthentication"), run.errors);
  CHECK_FALSE(contains(run.output + run.errors, "not-the-password"));
}

TEST_CASE("Secured: validate names the right that is missing, one after the other, and changes nothing") {
  Job job;
  const auto config = job.config();
  const auto& plain = job.kafka->server().brokers();
  const std::string control = "rivulet.pumps.control";
  const auto lacks = [&](const std::string& words) {
    const auto said = rivulet_run(job.with({"validate", config, "--environment", "--http", "off"}), 60s);
    CHECK_MESSAGE(said.status.code == (words.empty() ? 0 : 69), said.output << said.errors);
    CHECK_MESSAGE(contains(said.output, words), "not \"" << words << "\" but " << said.output);
    check_silent(said.output + said.errors);
  };
  const auto allow = [&](const char* operation, const char* kind, const std::string& name) {
    REQUIRE(job.kafka->allow({"--operation", operation, kind, name}));
  };
  lacks("not authorized to DESCRIBE the topic readings");
  allow("DESCRIBE", "--topic", "readings");
  lacks("not authorized to READ the group rivulet.pumps");
  allow("READ", "--group", "rivulet.pumps");
  lacks("not authorized to READ the topic readings");
  allow("READ", "--topic", "readings");
  lacks("not authorized to DESCRIBE the topic " + control);
  allow("DESCRIBE", "--topic", control);
  lacks("does not exist yet, and cannot create topic " + control);
  allow("CREATE", "--topic", control);
  lacks("");
  const stream::Properties as_tests{{"bootstrap.servers", plain}};
  CHECK_FALSE(stream::find_topic(as_tests, control, 10s).value());
  REQUIRE(create_topic(plain, control, 1));
  // A right to read or write includes the right to describe.
  lacks("not authorized to READ the topic " + control);
  allow("READ", "--topic", control);
  lacks("not authorized to WRITE to the topic " + control);
  allow("WRITE", "--topic", control);
  lacks("");
  const auto ends = stream::log_ends(as_tests, {{control, {0, 0}}}, 10s);
  REQUIRE(ends);
  CHECK(ends.value()[0].high == 0);
}

TEST_CASE(
    "Secured: the search for secrets finds one that is planted, in what is said and in what is written") {
  CHECK(is_silent("all is well"));
  CHECK_FALSE(is_silent("as header: Bearer " + token));
  CHECK_FALSE(is_silent("as header: Basic " + token_sent));
  const TempDir folder;
  fs::create_directories(folder.path() / "data" / "deep");
  folder.write("data/deep/log", "fine\n");
  CHECK(is_silent(all_files_below(folder.path() / "data")));
  folder.write("data/deep/state", std::string("\0\1", 2) + password);
  CHECK_FALSE(is_silent(all_files_below(folder.path() / "data")));
}

TEST_CASE("Secured: no secret in any output, page, log or file") {
  Job job;
  job.allow_all();
  const auto config = job.config();
  const int port = free_port();
  const auto token_file = (job.folder.path() / "token").string();
  auto options =
      rivulet_with(job.with({"run", "--config", config, "--http", "0.0.0.0:" + std::to_string(port), "--set",
                             "http.token_file=" + token_file, "--set", "log.level=debug"}));
  auto device = Process::start(options);
  REQUIRE(device);
  const auto header = "Bearer " + token;
  const auto page = [&](const std::string& path, const std::string& as) {
    return runtime::http_get("127.0.0.1", port, path, as);
  };
  REQUIRE(wait_until([&] { return static_cast<bool>(page("/readyz", "")); }, 60s));
  CHECK(wait_until(
      [&] {
        const auto status = page("/api/v1/status", header);
        return status && nlohmann::json::parse(status.value())["rows_trained"] > 500;
      },
      60s));
  CHECK(contains(page("/metrics", "").error().message, " answers 401"));
  for (const char* path : {"/", "/metrics", "/api/v1/status", "/api/v1/group"}) {
    const auto answer = page(path, header);
    REQUIRE_MESSAGE(answer, answer.error().message);
    check_silent(answer.value());
  }
  const auto address = "127.0.0.1:" + std::to_string(port);
  for (const std::vector<std::string>& looks :
       {std::vector<std::string>{"status", address, "--token-file", token_file},
        {"status", address, "--token-file", token_file, "--json"},
        {"top", address, "--token-file", token_file, "--count", "1"}}) {
    const auto seen = rivulet_run(looks);
    CHECK_MESSAGE(seen.status.code == 0, seen.errors);
    check_silent(seen.output + seen.errors);
  }
  const auto stranger = rivulet_run({"status", address});
  CHECK(stranger.status.code == 69);
  device.value()->send_signal(SIGTERM);
  CHECK(device.value()->wait(30s));
  check_silent(device.value()->output());
  check_silent(all_files_below(job.folder.path() / "data"));
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"config", "show", "--config", config, "--origin"},
        {"config", "show", "--config", config, "--json"},
        {"validate", config, "--environment", "--json"},
        {"doctor", "--json"}}) {
    const auto said = rivulet_run(command);
    check_silent(said.output + said.errors);
  }
}
