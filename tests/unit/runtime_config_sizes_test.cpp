// job.devices as a number, a range or a table.
#include <doctest/doctest.h>

#include "core/group_sizes.h"
#include "tests/support/config_text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

LoadedConfig with(const std::string& job, const Lines& sets = {}) {
  Files files;
  auto input = input_of(files.write("d.toml", "[job]\nname = \"j\"\n" + job +
                                                  "[source]\ntopics = [\"t\"]\n"
                                                  "kafka.properties.bootstrap.servers = \"h:1\"\n"));
  input.sets = sets;
  return load_config(input);
}

GroupSizes sizes_of(const std::string& job, const Lines& sets = {}) {
  const auto loaded = with(job, sets);
  CHECK(loaded.usable());
  return loaded.config.job.devices;
}

std::string problem_of(const std::string& job, const Lines& sets = {}) {
  const auto loaded = with(job, sets);
  REQUIRE(loaded.problems.size() == 1);
  const Problem& problem = loaded.problems.front();
  return std::to_string(problem.line) + (problem.warning ? ": warning: " : ": error: ") + problem.message;
}

}  // namespace

TEST_CASE("Config sizes: a number is a group of fixed size, a range and a table are not") {
  CHECK(sizes_of("devices = 4\n") == GroupSizes(4));
  CHECK(sizes_of("devices = \"4\"\n") == GroupSizes(4));
  CHECK(sizes_of("devices = \"2-16\"\n") == GroupSizes(2, 16, 16));
  CHECK(sizes_of("devices = { min = 2, wanted = 8, max = 16 }\n") == GroupSizes(2, 8, 16));
  CHECK(sizes_of("devices = { max = 16 }\n") == GroupSizes(2, 16, 16));
  CHECK(sizes_of("devices = { max = 16 }\n", {"checkpoint.quorum=5"}) == GroupSizes(5, 16, 16));
  CHECK(sizes_of("", {"job.devices=2-16"}) == GroupSizes(2, 16, 16));
  CHECK(sizes_of("", {"job.devices={ min = 2, wanted = 3, max = 4 }"}) == GroupSizes(2, 3, 4));
  CHECK(sizes_of("") == GroupSizes(4));
}

TEST_CASE("Config sizes: a later number replaces a table, a later size only itself") {
  const std::string table = "devices = { min = 2, wanted = 8, max = 16 }\n";
  CHECK(sizes_of(table, {"job.devices=3"}) == GroupSizes(3));
  CHECK(sizes_of(table, {"job.devices.max=32"}) == GroupSizes(2, 8, 32));
  CHECK(sizes_of("devices = 4\n", {"job.devices=2-16", "job.devices.wanted=8"}) == GroupSizes(2, 8, 16));
}

TEST_CASE("Config sizes: shrink is a fixed number that may fall to the quorum") {
  CHECK(sizes_of("devices = 4\n", {"sync.on_peer_loss=shrink"}) == GroupSizes(2, 4, 4));
  CHECK(sizes_of("devices = 4\n", {"sync.on_peer_loss=shrink", "checkpoint.quorum=3"}) ==
        GroupSizes(3, 4, 4));
  CHECK(sizes_of("devices = 1\n", {"sync.on_peer_loss=shrink"}) == GroupSizes(1));
  CHECK(problem_of("devices = \"2-16\"\n", {"sync.on_peer_loss=shrink"}) ==
        "0: error: 'sync.on_peer_loss' is 'shrink', which is for a fixed number of devices: 'job.devices' = "
        "2-16 "
        "changes its size anyway");
}

TEST_CASE("Config sizes: what cannot be is refused with its line and values") {
  CHECK(problem_of("devices = { min = 9, wanted = 8, max = 16 }\n") ==
        "3: error: 'job.devices' has min = 9, wanted = 8 and max = 16, must ascend from at least 1");
  CHECK(problem_of("devices = { min = 2, wanted = 8 }\n") ==
        "3: error: 'job.devices.max' is required: the largest number of devices");
  CHECK(problem_of("devices = { least = 2, max = 8 }\n").find("3: error: unknown key 'job.devices.least'") ==
        0);
  CHECK(problem_of("devices = \"16-2\"\n") ==
        "3: error: 'job.devices' is '16-2', must be a number from 1 to 10000, or a range such as \"2-16\"");
  CHECK(problem_of("devices = 0\n") ==
        "3: error: 'job.devices' is '0', must be a number from 1 to 10000, or a range such as \"2-16\"");
  CHECK(problem_of("devices = { min = 0, max = 8 }\n") ==
        "3: error: 'job.devices.min' is '0', must be a number from 1 to 10000");
  CHECK(problem_of("devices = true\n") ==
        "3: error: 'job.devices' must be a number from 1 to 10000, or a range such as \"2-16\", not true");
}

TEST_CASE("Config sizes: fewer devices than the quorum commit nothing, which is a warning") {
  CHECK(problem_of("devices = \"1-4\"\n") ==
        "3: warning: 'job.devices' has min = 1, below 'checkpoint.quorum' = 2: with fewer than 2 devices the "
        "group "
        "trains, but commits no checkpoint");
  CHECK(with("devices = 1\n").problems.empty());
}

TEST_CASE("Config sizes: they are one key of the group, in one form") {
  const auto key = [](const std::string& job) { return group_keys(with(job)).at("job.devices"); };
  CHECK(key("devices = 4\n") == "4");
  CHECK(key("devices = { min = 4, wanted = 4, max = 4 }\n") == "4");
  CHECK(key("devices = { min = 2, max = 16 }\n") == "2-16");
  CHECK(key("devices = { min = 2, wanted = 8, max = 16 }\n") == "{ min = 2, wanted = 8, max = 16 }");
  const auto loaded = with("devices = { min = 2, max = 16 }\n");
  CHECK(loaded.effective.at("job.devices") == "\"2-16\"");
  CHECK(loaded.origin.at("job.devices").ends_with("d.toml:3"));
  CHECK_FALSE(loaded.effective.contains("job.devices.min"));
  CHECK_FALSE(group_keys(loaded).contains("job.devices.min"));
}
