#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "core/rng.h"
#include "devices/trainer.h"
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

TEST_CASE("Config: the canonical device.toml loads without a problem and means what it says") {
  auto input = input_of(source_path("tests/support/device.toml"));
  const auto loaded = load_config(input);
  for (const auto& problem : loaded.problems) MESSAGE(problem.text());
  REQUIRE(loaded.problems.empty());
  const Config& c = loaded.config;
  CHECK(c.job.name == "mnist");
  CHECK(c.job.devices == 4);
  CHECK(c.device.id == "edge-7");
  CHECK(c.source.topics == Lines{"mnist"});
  CHECK(c.source.claims == std::vector<std::pair<std::string, int>>{{"mnist", 0}});
  CHECK(c.source.kafka_properties ==
        std::vector<std::pair<std::string, std::string>>{{"bootstrap.servers", "localhost:9092"}});
  CHECK(c.decode.shape == std::vector<std::int64_t>{1, 28, 28});
  CHECK(c.decode.scale == std::vector<double>{0.0127288});
  CHECK(c.decode.shift == std::vector<double>{-0.4242});
  CHECK(c.batch.tick == 100ms);
  CHECK(c.train.lr == 0.05);
  CHECK(c.sync.deadline == 5s);
  CHECK(c.evaluate.held_out_path.empty());
  CHECK(loaded.effective.at("sync.deadline") == "\"5s\"");
  CHECK(loaded.effective.at("train.optimizer.momentum") == "0.9");
}

TEST_CASE("Config: a thousand features still fit a HELLO, and a difference at their end is one") {
  const auto hello_of = [](const std::string& last) {
    std::string features;
    for (int i = 0; i < 1000; ++i) features += "\"sensor_" + std::to_string(i) + "\", ";
    const LoadedText loaded(config_base + "[decode]\nformat = \"json\"\njson = { features = [" + features +
                            "\"" + last + "\"], target = \"y\" }\n");
    REQUIRE(loaded.problems().empty());
    return membership_config(loaded.config, 1).hello;
  };
  const auto one = hello_of("a");
  sync::membership::Hello said = one;
  said.nonce = "n";
  const auto bytes = sync::membership::encode(said, "mnist");
  REQUIRE(bytes);
  CHECK(sync::membership::decode(bytes.value(), "mnist"));
  const auto other = hello_of("b");
  CHECK(one.config_hash != other.config_hash);
  CHECK(one.config.at("decode.json.features") != other.config.at("decode.json.features"));
  CHECK(one.config.at("decode.json.features").size() < 400);
}

TEST_CASE("Config: defaults of the struct, of the table and of the canonical file are the same") {
  const auto file = load_config(input_of(source_path("tests/support/device.toml")));
  const auto none = load_config(input_of());
  for (const auto& [key, value] : none.effective) {
    if (key != "job.name" && key != "source.topics") CHECK_MESSAGE(file.effective.at(key) == value, key);
  }
  const Config c;
  const Config& d = none.config;
  CHECK(std::tie(c.job.devices, c.job.seed) == std::tie(d.job.devices, d.job.seed));
  CHECK(std::tie(c.batch.rows, c.batch.min, c.batch.max, c.batch.tick, c.batch.max_wait) ==
        std::tie(d.batch.rows, d.batch.min, d.batch.max, d.batch.tick, d.batch.max_wait));
  CHECK(
      std::tie(c.decode.format, c.decode.shape, c.decode.scale, c.decode.shift, c.decode.max_record_bytes) ==
      std::tie(d.decode.format, d.decode.shape, d.decode.scale, d.decode.shift, d.decode.max_record_bytes));
  CHECK(std::tie(c.model.name, c.model.classes, c.model.dtype) ==
        std::tie(d.model.name, d.model.classes, d.model.dtype));
  CHECK(std::tie(c.train.lr, c.settings, c.train.loss, c.train.on_nonfinite) ==
        std::tie(d.train.lr, d.settings, d.train.loss, d.train.on_nonfinite));
  CHECK(std::tie(c.sync.deadline, c.sync.bind, c.sync.digest_every, c.sync.speculate, c.http.listen,
                 c.watchdog.deadline) == std::tie(d.sync.deadline, d.sync.bind, d.sync.digest_every,
                                                  d.sync.speculate, d.http.listen, d.watchdog.deadline));
  CHECK(std::tie(c.log.decisions, c.log.decisions_max) == std::tie(d.log.decisions, d.log.decisions_max));
  CHECK(std::tie(c.buffer.rows, c.evaluate.prequential_window, c.evaluate.held_out_every, c.log.format) ==
        std::tie(d.buffer.rows, d.evaluate.prequential_window, d.evaluate.held_out_every, d.log.format));
}

TEST_CASE("Config: the template loads without a problem, names every key that works, and is annotated") {
  const std::string text = config_template();
  const LoadedText loaded(text);
  CHECK(loaded.problems() == Lines{});
  for (const auto& spec : key_table()) {
    const std::string name = spec.key.substr(spec.key.rfind('.') + 1);
    const bool part = spec.key.starts_with("job.devices.");  // of a table in place of a number
    if (spec.since.empty() && !part) CHECK_MESSAGE(text.find(name + " = ") != std::string::npos, spec.key);
  }
  CHECK(text.find("dead_letter") == std::string::npos);
  CHECK(text.find("deadline = \"5s\"") != std::string::npos);
  // Commented lines must also be valid when the '#' is removed.
  std::string uncommented;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool optional = line.starts_with("# ") && line.find(" = ") != std::string::npos &&
                          line.find(" = ") == line.find(' ', 2);
    uncommented += (optional ? line.substr(2) : line) + "\n";
  }
  CAPTURE(uncommented);
  CHECK(LoadedText(uncommented).problems() ==
        Lines{"device.toml:" +
              std::to_string(1 + std::count(uncommented.begin(),
                                            uncommented.begin() +
                                                static_cast<std::ptrdiff_t>(uncommented.find("outputs =")),
                                            '\n')) +
              ":11: warning: 'model.outputs' has no effect with train.loss = 'cross_entropy'; use "
              "model.classes"});
}

TEST_CASE("Config: the template is the seed that the search for breaking configurations keeps") {
  std::ifstream file(source_path("tests/fuzz/corpus/config/seed-00"));
  const std::string kept{std::istreambuf_iterator<char>(file), {}};
  const auto has_model = [](std::string_view name) {
    return std::ranges::count(devices::builtin_models(), name, &devices::ModelEntry::name) > 0;
  };
  const std::string now = config_template();
  if (std::ranges::none_of(devices::models_of_torch(), has_model)) {
    const bool same = kept == now;
    CHECK_MESSAGE(same, "write the seeds again: scripts/fuzz names the command");
    return;
  }
  // Searches run without LibTorch, so the seed lacks its models and their keys.
  std::istringstream lines(kept);
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK((now.find(line + "\n") != std::string::npos || line.starts_with("name = ")));
  }
}

TEST_CASE("Config: a dry run makes the plans of the devices beside it") {
  Config config;
  config.model.classes = 2;
  auto usual = worker_config(config, {}, {}, {}).session.policy;
  const auto dry = worker_config(config, {.dry_run = true}, {}, {}).session.policy;
  usual.checkpoint_rounds = dry.checkpoint_rounds;  // a dry run has none
  CHECK(dry == usual);
  CHECK(usual.on_divergence == "roll_back");
}
