// `rivulet validate --environment` checks every requirement of a device, and names missing ones.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/rivulet_program.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

/// A job of two devices on an embedded broker with topic `rows` (2 partitions) and its control topic.
struct Place {
  Place() {
    folder.write("device.toml",
                 "version = 1\n[job]\nname = \"t\"\ndevices = 2\n[source]\ntopics = [\"rows\"]\n"
                 "partitions = [0]\n[source.kafka.properties]\n\"bootstrap.servers\" = \"" +
                     broker.address + "\"\n[http]\nlisten = \"off\"\n[device]\ndata_dir = \"" +
                     (folder.path() / "data").string() + "\"\n");
  }
  [[nodiscard]] RunOutput validate(const std::vector<std::string>& more) const {
    std::vector<std::string> all{"validate", (folder.path() / "device.toml").string(), "--environment"};
    all.insert(all.end(), more.begin(), more.end());
    return rivulet_run(all);
  }
  TempDir folder;
  Broker broker = start_broker("t", "rows:2");
};

}  // namespace

TEST_CASE("Environment: all of it is tried and named where it is good") {
  const Place place;
  const auto good = place.validate({});
  CHECK(good.status.code == 0);
  for (const char* line :
       {"ok    topic rows           2 partitions\n", "ok    topic rivulet.t.control 1 partition\n",
        "ok    peer address         127.0.0.1, reachable only from this machine\n",
        "ok    device.type          computes on host\n", "ok    data directory ",
        "ok    http port            off\n", "ok    http token "})
    CHECK_MESSAGE(contains(good.output, line), line << "is not in\n" << good.output);
}

TEST_CASE("Environment: what is not there is named, and the exit says so") {
  const Place place;
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrongs{
      {{"--set", "source.topics=nowhere"},
       "fail  topic nowhere        does not exist on " + place.broker.address},
      {{"--partitions", "2"},
       "fail  topic rows           has partitions 0 to 1, but this device claims partition 2\n"},
      {{"--set", "device.type=cuda"}, "fail  device.type          "},
      {{"--peer-bind", "nosuch0"}, "fail  peer address         "},
      {{"--data-dir", "/proc/nowhere"}, "fail  data directory       /proc/nowhere is not writable\n"},
      {{"--set", "job.name=u"}, "fail  topic rivulet.u.control "}};
  for (const auto& [arguments, said] : wrongs) {
    const auto wrong = place.validate(arguments);
    CHECK_MESSAGE(wrong.status.code == 69, arguments.back());
    CHECK_MESSAGE(contains(wrong.output, said), said << "is not in\n" << wrong.output << wrong.errors);
  }
  // The check of the configuration already reports it.
  const auto token = place.validate(
      {"--http", "192.0.2.1:9464", "--set", "http.token_file=" + (place.folder.path() / "none").string()});
  CHECK(token.status.code == 78);
  CHECK_MESSAGE(contains(token.errors, "cannot be read"), token.output << token.errors);
  const auto three = start_broker("other", "rivulet.v.control:3");
  const auto many = place.validate({"--brokers", three.address, "--set", "job.name=v", "--set",
                                    "source.topics=rivulet.v.control", "--devices", "1"});
  CHECK(many.status.code == 69);
  CHECK_MESSAGE(contains(many.output, "has 3 partitions, exactly one is allowed"), many.output);
}
