#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/cli/command.h"
#include "runtime/cli/config_flags.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"

using namespace rivulet::runtime;
using namespace rivulet::runtime::cli;
using namespace rivulet::testing;

namespace {

struct Said {
  ExitCode exit;
  std::string out;
  std::string err;
};

Said say(const std::vector<std::string>& arguments,
         const std::map<std::string, std::string>& environment = {}) {
  std::ostringstream out;
  std::ostringstream err;
  Terminal terminal{out, err};
  terminal.environment = environment;
  const auto exit = run_command_line(arguments, terminal);
  return {exit, out.str(), err.str()};
}

/// Every build has this model; the default one needs LibTorch.
const std::string linear = "model.name=linear";

/// A valid configuration plus `more`.
std::string job(const std::string& more) {
  return "version = 1\n[job]\nname = \"t\"\n[source]\ntopics = [\"rows\"]\n"
         "kafka.properties.bootstrap.servers = \"localhost:9092\"\n" +
         more;
}

}  // namespace

TEST_CASE("Usage: every command teaches with examples and names its flags") {
  const std::map<std::vector<std::string>, std::vector<std::string>> commands = {
      {{"run"},
       {"--config", "--id", "--brokers", "--topic", "--partitions", "--devices", "--data-dir", "--http",
        "--peer-bind", "--advertise", "--set", "--stop-after", "--dry-run", "--json", "RIVULET_BROKERS",
        "RIVULET_STOP_AFTER"}},
      {{"demo"},
       {"--devices", "--rates", "--seconds", "--model", "--seed", "--keep", "--json", "--brokers", "--data"}},
      {{"feed"},
       {"--brokers", "--topic", "--rates", "--partitions", "--seconds", "--duration", "--seed",
        "--labels-per-device", "--repeat", "--second-rates", "--change-at", "--job", "--pace", "--json"}},
      {{"broker"}, {"--job", "--topic", "--until-eof"}},
      {{"peek"}, {"--rows", "--from", "--config", "--brokers", "--set", "--json"}},
      {{"simulate"},
       {"--config", "--set", "--devices", "--rates", "--stop-after", "--profile-fixed", "--profile-rate",
        "--latency", "--bandwidth", "--data", "--held-out", "--seed", "--model", "--json"}},
      {{"decisions"}, {"replay", "explain", "gains"}},
      {{"decisions", "replay"}, {"LOG", "--json"}},
      {{"decisions", "explain"}, {"LOG", "--round", "--view", "--last", "--json"}},
      {{"config"}, {"init", "show"}},
      {{"config", "init"}, {"--output", "--from-topic", "--target", "--rows", "--brokers", "--set"}},
      {{"config", "show"}, {"--origin", "--set"}},
      {{"validate"}, {"--environment", "--json"}},
      {{"doctor"}, {"--json"}},
      {{"version"}, {"--json"}},
  };
  for (const auto& [command, flags] : commands) {
    auto arguments = command;
    arguments.emplace_back("--help");
    const auto said = say(arguments);
    CAPTURE(command.back());
    CHECK(said.exit == ExitCode::ok);
    CHECK(said.err.empty());
    CHECK(contains(said.out, "Usage: rivulet " + command.front()));
    CHECK(contains(said.out, "Examples:\n  rivulet " + command.front()));
    for (const auto& flag : flags) {
      CAPTURE(flag);
      CHECK(contains(said.out, flag));
    }
  }
}

TEST_CASE("Usage: the first page shows the way and explains the exit codes") {
  const auto said = say({"--help"});
  CHECK(said.exit == ExitCode::ok);
  for (const char* part :
       {"rivulet demo", "rivulet config init", "69", "75", "78", "validate", "doctor", "peek"}) {
    CAPTURE(part);
    CHECK(contains(said.out, part));
  }
}

TEST_CASE("Usage: a wrong command, flag or argument is exit 2 and says what was meant") {
  const auto command = say({"demmo"});
  CHECK(command.exit == ExitCode::usage);
  CHECK(contains(command.err, "unknown command 'demmo' - did you mean 'demo'?"));
  const auto flag = say({"run", "--confg", "device.toml"});
  CHECK(flag.exit == ExitCode::usage);
  CHECK(contains(flag.err, "unknown flag '--confg' - did you mean '--config'?"));
  CHECK(contains(flag.err, "rivulet run --help"));
  const auto with_value = say({"demo", "--secnods=3"});
  CHECK(with_value.exit == ExitCode::usage);
  CHECK(contains(with_value.err, "did you mean '--seconds'?"));
  const auto nested = say({"config", "shwo"});
  CHECK(nested.exit == ExitCode::usage);
  CHECK(contains(nested.err, "did you mean 'show'?"));
  const auto nothing = say({});
  CHECK(nothing.exit == ExitCode::usage);
  CHECK(contains(nothing.err, "needs a command"));
  CHECK(nothing.out.empty());
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"feed"},
                                                {"broker", "--job", "x"},
                                                {"demo", "--devices", "many"},
                                                {"demo", "--devices", "0"},
                                                {"feed", "x", "--topic", "t", "--split", "half"},
                                                {"version", "extra"},
                                                {"config"},
                                                {"run", "--config"}}) {
    CAPTURE(wrong.front());
    const auto said = say(wrong);
    CHECK(said.exit == ExitCode::usage);
    CHECK(contains(said.err, "error: "));
    CHECK(said.out.empty());
  }
}

TEST_CASE("Usage: values that mean nothing are exit 2 before anything is opened") {
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"run", "--stop-after", "soon"},
        {"feed", "/nowhere", "--topic", "t", "--rates", "fast"},
        {"feed", "/nowhere", "--topic", "t", "--second-rates", "5"},
        {"feed", "/nowhere", "--topic", "t", "--seconds", "later"},
        {"feed", "/nowhere", "--topic", "t", "--pace"},
        {"feed", "/nowhere", "--topic", "t", "--property", "nothing"},
        {"broker", "--job", "j", "--topic", "t:0"},
        {"broker", "--job", "j", "--topic", "t"},
        {"broker", "--job", "j", "--topic", "t t:1"},
        {"broker", "--job", "j k", "--topic", "t:1"},
        {"broker", "--job", "j", "--topic", "t:1", "--topic", "t:2"},
        {"peek", "t", "--rows", "-1"},
        {"feed", "d", "--topic", "t", "--partitions", "-1"},
        {"feed", "d", "--topic", "t", "--labels-per-device", "-1"},
        {"feed", "d", "--topic", "t", "--change-at", "3s"},
        {"simulate", "--model", "linear", "--devices", "2", "--rates", "1,2,3"},
        {"simulate", "--model", "linear", "--rates", "0", "--stop-after", "rounds=3"},
        {"simulate", "--model", "linear", "--rates", "0:0,5:0", "--stop-after", "rows=3"},
        {"broker", "--job", "j", "--topic", "t:x"},
        {"peek", "t", "--from", "yesterday"},
        {"simulate", "--rates", "0:x"},
        {"simulate", "--latency", "far"},
        {"simulate", "--profile-rate", "0"},
        {"simulate", "--model", "linear", "--trace", "S3"},
        {"simulate", "--trace", "S1", "--rates", "5"},
        {"simulate", "--profile", "fast"},
        {"simulate", "--profile", "1ms+0"},
        {"simulate", "--own-link", "10mb"},
        {"simulate", "--own-link", "10mbit/far"},
        {"simulate", "--own-link", "10mbit/1ms/much"},
        {"simulate", "--own-link", "10mbit/1ms/2kB/3"},
        {"simulate", "--model", "linear", "--faults", "/nowhere"},
        {"simulate", "--model", "linear", "--faults", ""},
        {"simulate", "--model", "linear", "--rates", "0x64"},
        {"simulate", "--model", "linear", "--rates", "1e-300", "--stop-after", "rows=1"},
        {"simulate", "--partitions", "0"},
        {"decisions", "explain", "x.jsonl", "--round", "-1"},
        {"decisions", "explain", "x.jsonl", "--view", "18446744073709551616"},
        {"simulate", "--seed", "18446744073709551615"},
        {"simulate", "--model", "linear", "--rates", "1e300"},
        {"simulate", "--model", "linear", "--stop-after", "seconds=1e300"},
        {"simulate", "--model", "linear", "--bandwidth", "1e-300"},
        {"simulate", "--model", "linear", "--profile-rate", "1e-300"},
        {"simulate", "--model", "linear", "--own-link", "1e-300kbit"},
        {"simulate", "--model", "linear", "--profile", "1ms+5,1ms+5"},
        {"simulate", "--model", "linear", "--timing-only", "--held-out", "d"},
        {"demo", "--devices", "3", "--rates", "1,2"},
        {"demo", "--seconds", "0"}}) {
    CAPTURE(wrong.front());
    CAPTURE(wrong.back());
    CHECK(say(wrong).exit == ExitCode::usage);
  }
}

TEST_CASE("Usage: version says what the binary is made of, in JSON too") {
  const auto said = say({"version"});
  CHECK(said.exit == ExitCode::ok);
  CHECK(contains(said.out, "rivulet "));
  CHECK(contains(said.out, "librdkafka: "));
  const auto json = nlohmann::json::parse(say({"version", "--json"}).out);
  CHECK(json.contains("rivulet"));
  CHECK(json.contains("revision"));
  CHECK(json.contains("librdkafka"));
  CHECK(contains(say({"--version"}).out, "rivulet "));
}

TEST_CASE("Usage: config init writes a file that validate accepts, and never over another") {
  const rivulet::testing::TempDir folder;
  const auto file = (folder.path() / "device.toml").string();
  const auto made = say({"config", "init", "--output", file});
  CHECK(made.exit == ExitCode::ok);
  CHECK(rivulet::testing::read_file(file) == say({"config", "init"}).out);
  const auto valid = say({"validate", file, "--set", linear});
  CHECK(valid.err == "");
  CHECK(valid.exit == ExitCode::ok);
  CHECK(contains(valid.out, "is valid"));
  CHECK(say({"config", "init", "--output", file}).exit == ExitCode::failure);
}

TEST_CASE("Usage: config show --origin says who decided each value") {
  const rivulet::testing::TempDir folder;
  const auto file = folder.write("device.toml", job("[batch]\nrows = 32\n")).string();
  const auto said = say({"config", "show", "--config", file, "--origin", "--set", linear, "--set",
                         "batch.tick=200ms", "--id", "seven"},
                        {{"RIVULET_SET_BATCH__MIN", "2"}, {"RIVULET_DEVICES", "3"}});
  CHECK(said.exit == ExitCode::ok);
  const auto line_of = [&said](const std::string& key) {
    const auto at = said.out.find("\n" + key + " = ") + 1;
    return said.out.substr(at, said.out.find('\n', at) - at);
  };
  CHECK(contains(line_of("batch.rows"), "32"));
  CHECK(contains(line_of("batch.rows"), "# " + file + ":8"));
  CHECK(contains(line_of("batch.tick"), "# --set"));
  CHECK(contains(line_of("batch.min"), "RIVULET_SET_BATCH__MIN"));
  CHECK(contains(line_of("job.devices"), "RIVULET_DEVICES"));
  CHECK(contains(line_of("device.id"), "\"seven\""));
  CHECK(contains(line_of("device.id"), "flag"));
  CHECK(contains(line_of("batch.max"), "# default"));
}

TEST_CASE("Usage: validate names file, line and what was meant, and exits with 78") {
  const rivulet::testing::TempDir folder;
  const auto file = folder.write("device.toml", job("[decode]\nfrmat = \"raw\"\n")).string();
  const auto said = say({"validate", file, "--set", linear});
  CHECK(said.exit == ExitCode::configuration);
  CHECK(contains(said.err, file + ":8:1: error:"));
  CHECK(contains(said.err, "decode.frmat"));
  CHECK(contains(said.err, "format"));
  CHECK(contains(said.err, "1 error, 0 warnings"));
  const auto json = nlohmann::json::parse(say({"validate", file, "--set", linear, "--json"}).out);
  CHECK(json["valid"] == false);
  CHECK(json["problems"][0]["line"] == 8);
}

TEST_CASE("Usage: validate lets librdkafka judge every property, and places its words") {
  const rivulet::testing::TempDir folder;
  const auto file = folder
                        .write("device.toml", job("kafka.properties.group.protocol = \"consumer\"\n"
                                                  "kafka.properties.fetch.min.bytes = \"many\"\n"))
                        .string();
  const auto said = say({"validate", file, "--set", linear});
  CHECK(said.exit == ExitCode::configuration);
  CHECK(contains(said.err, file + ":7:"));
  CHECK(contains(said.err, "group.protocol"));
  CHECK(contains(said.err, file + ":8:"));
  CHECK(contains(said.err, "fetch.min.bytes"));
  CHECK(contains(said.err, "2 errors"));
}

TEST_CASE("Usage: flags become TOML of their keys") {
  CHECK(toml_of_flag("device.id", "7") == "\"7\"");
  CHECK(toml_of_flag("job.devices", "4") == "4");
  CHECK(toml_of_flag("source.topics", "a,b") == "[\"a\", \"b\"]");
  CHECK(toml_of_flag("source.partitions", "0,2") == "[0, 2]");
  CHECK(toml_of_flag("source.partitions", "0-3,7") == "[0, 1, 2, 3, 7]");
  CHECK(toml_of_flag("source.partitions", "sensors:0-3") == "[\"sensors:0-3\"]");
}
