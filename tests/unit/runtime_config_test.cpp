#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "core/rng.h"
#include "runtime/config/config.h"
#include "runtime/node/node_config.h"
#include "sync/membership/records.h"
#include "tests/support/config_text.h"
#include "tests/support/places.h"
#include "tests/support/temp_dir.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;
using namespace std::chrono_literals;

TEST_CASE("Config: unknown keys and tables have a place and a suggestion") {
  CHECK(problems_of(config_base + "[decode]\nfrmat = \"raw\"\n") ==
        Lines{"device.toml:9:1: error: unknown key 'decode.frmat' - did you mean 'format'?"});
  CHECK(problems_of(config_base + "[btach]\nrows = 1\nmin = 2\n") ==
        Lines{"device.toml:8:2: error: unknown table 'btach' - did you mean 'batch'?"});
  CHECK(problems_of(config_base + "[train]\noptimizer = { name = \"sgd\", lrr = 0.1 }\n") ==
        Lines{"device.toml:9:29: error: unknown key 'train.optimizer.lrr' - did you mean 'lr'?"});
  CHECK(problems_of(config_base + "[nonsense]\n") ==
        Lines{"device.toml:8:2: error: unknown table 'nonsense'"});
  CHECK(problems_of("tick = 3\n" + config_base) == Lines{"device.toml:1:1: error: unknown key 'tick'"});
}

TEST_CASE("Config: wrong types have a place and say what they are") {
  const auto one = [](const std::string& line) { return problems_of(config_base + line + "\n"); };
  CHECK(one("[batch]\nrows = \"64\"") ==
        Lines{"device.toml:9:8: error: 'batch.rows' must be an integer, not the string \"64\""});
  CHECK(one("[batch]\nrows = 1.5") ==
        Lines{"device.toml:9:8: error: 'batch.rows' must be an integer, not the number 1.5"});
  CHECK(
      one("[batch]\ntick = 100") ==
      Lines{
          "device.toml:9:8: error: 'batch.tick' must be a duration such as \"100ms\", not the integer 100"});
  CHECK(one("[batch]\ntick = \"5 parsecs\"") ==
        Lines{"device.toml:9:8: error: 'batch.tick' must be a duration such as \"100ms\", not the string \"5 "
              "parsecs\""});
  CHECK(
      one("[decode]\nraw = { shape = [1, \"a\"] }") ==
      Lines{
          "device.toml:9:17: error: 'decode.raw.shape' must be a list of integers, not the list [1, \"a\"]"});
  CHECK(one("[decode]\nmax_record_bytes = \"lots\"") ==
        Lines{"device.toml:9:20: error: 'decode.max_record_bytes' must be a size such as \"1 MiB\", not the "
              "string \"lots\""});
  CHECK(one("[device]\nid = 7") ==
        Lines{"device.toml:9:6: error: 'device.id' must be a string, not the integer 7"});
  CHECK(one("[source.kafka.properties.x]\ny = [1]") ==
        Lines{"device.toml:9:5: error: 'source.kafka.properties.x.y' must be a string, a number, true or "
              "false, not the list [1]"});
  CHECK(problems_of("batch = 5\n" + config_base) ==
        Lines{"device.toml:1:1: error: 'batch' must be a table of keys, not the integer 5"});
  CHECK(problems_of("[job]\nname = \"a\"\nseed = { min = 2, max = 4 }\n[source]\ntopics = "
                    "[\"t\"]\nkafka.properties.bootstrap.servers = \"h:1\"\n") ==
        Lines{"device.toml:3:1: error: 'job.seed' must be an integer, not a table"});
}

TEST_CASE("Config: values out of range have a place") {
  const auto one = [](const std::string& line) { return problems_of(config_base + line + "\n"); };
  CHECK(one("[batch]\nmin = 0") == Lines{"device.toml:9:7: error: 'batch.min' is 0, must be at least 1"});
  CHECK(one("[batch]\ntick = \"0s\"") ==
        Lines{"device.toml:9:8: error: 'batch.tick' is 0s, must be above 0s"});
  CHECK(one("[buffer]\nrows = 99999999") ==
        Lines{"device.toml:9:8: error: 'buffer.rows' is 99999999, must be at most 16777216"});
  CHECK(one("[train]\noptimizer.lr = nan") ==
        Lines{"device.toml:9:16: error: 'train.optimizer.lr' is nan, must be a finite number"});
  CHECK(one("[train]\noptimizer.lr = -0.1") ==
        Lines{"device.toml:9:16: error: 'train.optimizer.lr' is -0.1, must be above 0"});
  CHECK(one("[train]\noptimizer.momentum = 1") ==
        Lines{"device.toml:9:22: error: 'train.optimizer.momentum' is 1.0, must be at most 0.999999"});
  CHECK(one("[decode]\nraw.shape = [1, 0]") ==
        Lines{"device.toml:9:13: error: 'decode.raw.shape' has an item that is 0, must be at least 1"});
  CHECK(one("[decode]\nraw.shape = [100000, 100000]") ==
        Lines{"device.toml:9:13: error: 'decode.raw.shape' describes 10000000000 values per row, must be at "
              "most 10000000"});
  CHECK(one("[device]\nthreads = 0") ==
        Lines{"device.toml:9:11: error: 'device.threads' is 0, must be at least 1"});
  CHECK(problems_of("version = 2\n" + config_base.substr(12)) ==
        Lines{"device.toml:1:11: error: 'version' is 2, must be at most 1"});
}

TEST_CASE("Config: choices are listed, and names come from the catalogs") {
  const auto one = [](const std::string& line) { return problems_of(config_base + line + "\n"); };
  CHECK(one("[log]\nlevel = \"infos\"") == Lines{"device.toml:9:9: error: 'log.level' is 'infos', must be "
                                                 "one of: debug, info, warn, error - did you mean 'info'?"});
  CHECK(one("[decode]\nformat = \"xml\"") ==
        Lines{"device.toml:9:10: error: 'decode.format' is 'xml', must be one of: csv, json, raw"});
  CHECK(one("[model]\nname = \"lenet\"") ==
        Lines{"device.toml:9:8: error: 'model.name' is 'lenet', must be one of: cnn, lenet5, linear, mlp - "
              "did you mean 'lenet5'?"});
  CHECK(one("[batch]\npolicy = \"straem\"") == Lines{"device.toml:9:10: error: 'batch.policy' is 'straem', "
                                                     "must be one of: fixed, stream, unified - did you "
                                                     "mean 'stream'?"});
  auto input = input_of(source_path("tests/support/device.toml"));
  input.catalog->models = {"linear"};
  const auto loaded = load_config(input);
  REQUIRE(loaded.problems.size() == 1);
  CHECK(loaded.problems[0].message ==
        "'model.name' = 'lenet5': this build has no LibTorch; available: linear");
}

TEST_CASE("Config: keys of later work are accepted as the canonical file shows them and refused otherwise") {
  const auto one = [](const std::string& line) { return problems_of(config_base + line + "\n"); };
  CHECK(one("[device]\nmemory = \"1024 MiB\"").empty());
  CHECK(one("[device]\nmemory = \"2 GiB\"").empty());
  CHECK(one("[device]\ntype = \"cuda\"").empty());
  CHECK(one("[sync]\npolicy = \"auto\"\nbudget = \"2 GB/month\"") == Lines{});
  CHECK(one("[sync]\nbudget = \"2 GB\"") == Lines{"device.toml:9:10: error: 'sync.budget' is '2 GB', must be "
                                                  "a budget such as 0.1 of stream, 50 kB/s or 2 GB/month"});
  CHECK(one("[decode]\nformat = \"avro\"") ==
        Lines{"device.toml:9:10: error: 'decode.format' = 'avro' is not in this version"});
  CHECK(one("[decode]\non_error = \"dead_letter\"") ==
        Lines{"device.toml:9:12: error: 'decode.on_error' = 'dead_letter' is not in this version"});
  CHECK(one("[train]\nlr_scaling = { rule = \"linear\" }").empty());
  for (const auto& spec : key_table()) {
    if (spec.since.empty()) continue;
    const std::string set = spec.key + "=" +
                            (spec.type == "integer"    ? "999"
                             : spec.type == "number"   ? "9.5"
                             : spec.type == "duration" ? "77s"
                                                       : "zzz");
    const LoadedText loaded(config_base, {set});
    CHECK_MESSAGE(!loaded.config.usable(), set);
  }
}

TEST_CASE("Config: contradictions between keys are found") {
  const auto one = [](const std::string& line) { return problems_of(config_base + line + "\n"); };
  CHECK(one("[batch]\nmin = 100\nmax = 50") ==
        Lines{"device.toml:9:7: error: 'batch.min' is 100, must be at most 'batch.max' = 50"});
  CHECK(one("[batch]\npolicy = \"fixed\"\nrows = 2000") ==
        Lines{"device.toml:10:8: error: 'batch.rows' is 2000, must be from 'batch.min' = 1 to 'batch.max' = "
              "128"});
  CHECK(one("[buffer]\nrows = 100") == Lines{"device.toml:9:8: error: 'buffer.rows' is 100, must be at least "
                                             "'batch.max' = 128: the buffer must hold a batch"});
  CHECK(
      one("[batch]\ntick = \"1s\"") ==
      Lines{"device.toml:9:8: warning: 'batch.max_wait' is 200ms, below 'batch.tick' = 1s: every round ends "
            "after 200ms, before the end of its tick"});
  CHECK(one("[batch]\nmax_wait = \"6s\"") ==
        Lines{"device.toml:9:12: error: 'sync.deadline' is 5s, must be above 'batch.max_wait' = 6s: "
              "otherwise a device that waits for rows is considered lost"});
  CHECK(one("[model]\nclasses = 1") == Lines{"device.toml:9:11: error: 'model.classes' is 1, must be at "
                                             "least 2 for train.loss = 'cross_entropy'"});
  CHECK(one("[train]\nloss = \"mse\"\n[model]\nclasses = 10") ==
        Lines{"device.toml:11:11: warning: 'model.classes' has no effect with train.loss = 'mse'; use "
              "model.outputs"});
  CHECK(one("[train]\nloss = \"mse\"\n[evaluate]\nheld_out.path = \"rows\"") ==
        Lines{"device.toml:11:17: warning: 'evaluate.held_out.path' has no effect with train.loss = 'mse': "
              "held-out evaluation measures accuracy, which requires classes"});
  CHECK(one("[decode]\nformat = \"json\"") ==
        Lines{"device.toml:9:10: error: 'decode.json.features' is required for decode.format = 'json'",
              "device.toml:9:10: error: 'decode.json.target' is required for decode.format = 'json'"});
  CHECK(one("[decode]\nraw.label = \"none\"") ==
        Lines{"device.toml:9:13: error: 'decode.raw.label' is none, but training needs a target"});
}

TEST_CASE("Config: names, addresses and what is required") {
  const auto one = [](const std::string& line) { return problems_of(config_base + line + "\n"); };
  CHECK(problems_of("") == Lines{"device.toml: error: 'job.name' is required",
                                 "device.toml: error: 'source.topics' is required",
                                 "device.toml: error: 'source.kafka.properties.bootstrap.servers' is "
                                 "required for source.type = 'kafka'"});
  CHECK(problems_of("[job]\nname = \"my job\"\n" + config_base.substr(config_base.find("[source]"))) ==
        Lines{"device.toml:2:8: error: 'job.name' is 'my job', must be 1 to 128 letters, digits, '.', '_' or "
              "'-'"});
  CHECK(one("[device]\nid = \"\"") ==
        Lines{"device.toml:9:6: error: 'device.id' is '', must be 1 to 64 letters, digits, '.', '_' or '-'"});
  CHECK(one("[sync]\nbind = \"0.0.0.0\"") ==
        Lines{"device.toml:9:8: error: 'sync.bind' is '0.0.0.0', must be one interface or address: peer "
              "traffic must not be accepted on all interfaces"});
  for (const char* bad :
       {"9464", "localhost", "localhost:", ":80", "h:65536", "h:-1", "a b:80", "h:80x", "[::1]:9464"}) {
    CHECK(one("[http]\nlisten = \"" + std::string(bad) + "\"") ==
          Lines{"device.toml:9:10: error: 'http.listen' is '" + std::string(bad) +
                "', must be ADDRESS:PORT (an IPv4 address), or off"});
  }
  for (const char* good : {"off", "127.0.0.1:0", "localhost:80"}) {
    CHECK_MESSAGE(one("[http]\nlisten = \"" + std::string(good) + "\"").empty(), good);
  }
  CHECK(one("[http]\nlisten = \"0.0.0.0:9464\"") ==
        Lines{"device.toml:9:10: error: 'http.listen' is '0.0.0.0:9464', which other machines can reach: "
              "'http.token_file' must name a file with the token that clients must send"});
  CHECK(one("[http]\nlisten = \"0.0.0.0:9464\"\ntoken_file = \"/run/secrets/t\"").empty());
  CHECK(problems_of("[job]\nname = \"m\"\n[source]\ntype = \"kafka\"\n") ==
        Lines{"device.toml: error: 'source.topics' is required",
              "device.toml: error: 'source.kafka.properties.bootstrap.servers' is required for source.type = "
              "'kafka'"});
  CHECK(problems_of("[job]\nname = \"m\"\n[source]\ntype = \"file\"\npath = \"x\"\n") ==
        Lines{"device.toml: error: 'source.kafka.properties.bootstrap.servers' is required: a group of 4 "
              "devices forms through a broker"});
  CHECK(problems_of("[job]\nname = \"m\"\ndevices = 1\n[source]\ntype = \"synthetic\"\n").empty());
  CHECK(problems_of("[job]\nname = \"m\"\ndevices = 1\n[source]\ntype = \"file\"\n") ==
        Lines{"device.toml:5:8: error: 'source.path' is required for source.type = 'file'"});
  CHECK(one("[source]\n").size() == 1);  // a table given twice is a syntax error
}

TEST_CASE("Config: syntax errors and unreadable files are one problem, not a cascade") {
  const auto syntax = problems_of("[job]\nname = \"mnist\n");
  REQUIRE(syntax.size() == 1);
  CHECK(syntax[0].starts_with("device.toml:2:"));
  const auto missing = load_config(input_of("/nowhere/device.toml"));
  REQUIRE(missing.problems.size() == 1);
  CHECK(missing.problems[0].text() == "/nowhere/device.toml: error: the file does not exist");
  CHECK_FALSE(missing.usable());
}

TEST_CASE("Config: every problem is found in one run, errors before warnings, in order of the file") {
  CHECK(problems_of(
            "[job]\nnaem = \"a\"\n[http]\nlisten = \"0.0.0.0:1\"\n[batch]\nmin = -1\n[log]\nlevel = 3\n" +
            config_base.substr(config_base.find("[source]"))) ==
        Lines{"device.toml:2:1: error: unknown key 'job.naem' - did you mean 'name'?",
              "device.toml:4:10: error: 'http.listen' is '0.0.0.0:1', which other machines can reach: "
              "'http.token_file' must name a file with the token that clients must send",
              "device.toml:6:7: error: 'batch.min' is -1, must be at least 1",
              "device.toml:8:9: error: 'log.level' must be a string, not the integer 3",
              "device.toml: error: 'job.name' is required"});
}

TEST_CASE("Config: damaged files give problems, never a crash, and a usable one can be used") {
  const std::string good = testing::read_file(source_path("tests/support/device.toml"));
  REQUIRE(good.size() > 1000);
  Rng rng(99);
  const std::string spice = "\"'[]{}=.,#\n$-_5ab\xff";
  int usable = 0;
  for (int i = 0; i < 500; ++i) {
    std::string text = good;
    for (std::uint64_t edits = 1 + rng.below(4); edits > 0; --edits) {
      const std::size_t at = rng.below(text.size());
      const char c = spice[rng.below(spice.size())];
      switch (rng.below(3)) {
        case 0: text[at] = c; break;
        case 1: text.erase(at, 1 + rng.below(30)); break;
        default: text.insert(at, 1, c);
      }
    }
    const LoadedText loaded(text);
    const bool is_usable = loaded.config.usable();
    if (is_usable) ++usable;
    REQUIRE((is_usable || !loaded.problems().empty()));
    if (!is_usable) continue;
    REQUIRE(!loaded.config.config.job.name.empty());
    REQUIRE(!loaded.config.config.source.claims.empty());
    REQUIRE(loaded.config.config.batch.min <= loaded.config.config.batch.max);
  }
  CHECK(usable > 30);  // many edits affect comments
  CHECK(usable < 470);
}

TEST_CASE("Config: a watchdog that no thread could satisfy is refused") {
  CHECK(texts(with_sets({"watchdog.deadline=1ns"})) ==
        Lines{"--set watchdog.deadline: error: 'watchdog.deadline' is 1ns, must be at least 1s"});
  CHECK(with_sets({"watchdog.deadline=1s"}).usable());
}

TEST_CASE("Config: reading transactions that may be aborted is warned of") {
  const std::string key = "source.kafka.properties.isolation.level";
  const auto warned = with_sets({key + "=read_uncommitted"});
  REQUIRE(warned.problems.size() == 1);
  CHECK(warned.usable());
  CHECK(warned.problems[0].text() ==
        "--set " + key +
            ": warning: 'isolation.level' is 'read_uncommitted': rows of aborted transactions would be "
            "trained; use 'read_committed' (the default)");
  CHECK(with_sets({key + "=read_committed"}).problems.empty());
}
