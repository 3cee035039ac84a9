// Three unattended devices: a sensor breaks, another changes its unit, a season begins. The page of each
// device reports the changes of its stream, and the model stays good.
#include <doctest/doctest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/rng.h"
#include "runtime/status/http/http_server.h"
#include "tests/support/effort.h"
#include "tests/support/kafka_client.h"
#include "tests/support/network.h"
#include "tests/support/rivulet_program.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

enum Machine { breaks, other_unit, season, machines };
constexpr const char* sensors[] = {"temp", "rms", "flow"};

/// Sensor values of a device. `night`: the changes have occurred.
struct Plant {
  Rng rng{7};
  double moved = 0;  ///< of the season, in degrees

  std::string row(int machine, bool night) {
    const double z[] = {rng.normal(), rng.normal(), rng.normal()};
    const bool worn = z[0] + 0.4 * z[2] + 0.2 * z[1] > 0;
    double temp = 20 + 2 * z[0];
    double rms = 1 + 0.1 * z[1];
    double flow = 300 + 30 * z[2];
    if (night && machine == breaks) rms = 1.237;
    if (night && machine == other_unit) temp = 32 + 1.8 * temp;
    if (night && machine == season) flow += moved = std::min(150.0, moved + 0.1);
    std::ostringstream out;
    out.precision(6);
    out << R"({"temp":)" << temp << R"(,"rms":)" << rms << R"(,"flow":)" << flow << R"(,"state":")"
        << (worn ? "worn" : "ok") << R"("})";
    return out.str();
  }
};

const std::string job = R"(
[job]
name = "night"
devices = 3
seed = 5
[source]
topics = ["night"]
[decode.json]
features = ["temp", "rms", "flow"]
target = "state"
classes = ["ok", "worn"]
[model]
name = "mlp"
mlp.skip = true
[batch]
max = 16
[train.optimizer]
name = "adam"
lr = 0.01
)";

struct Night {
  TempDir folder;
  Broker broker = start_broker("night", "night:3");
  Plant plant;
  struct Device {
    std::unique_ptr<Process> process;
    int port = 0;
  };
  std::vector<Device> devices;

  Night() {
    folder.write("device.toml", "version = 1\n[decode]\nformat = \"json\"\n" + job);
    for (int i = 0; i < machines; ++i) devices.push_back(start(i));
  }
  [[nodiscard]] Device start(int i) const {
    Device one{nullptr, free_port()};
    const std::string name = "d" + std::to_string(i);
    auto started = Process::start(
        rivulet_with({"run", "--config", (folder.path() / "device.toml").string(), "--brokers",
                      broker.address, "--id", name, "--partitions", std::to_string(i), "--data-dir",
                      (folder.path() / name).string(), "--http", "127.0.0.1:" + std::to_string(one.port)}));
    REQUIRE(started);
    one.process = std::move(started).value();
    return one;
  }
  /// The same number for each device; a small backlog only.
  void resume(int rows, bool night) {
    for (int done = 0; done < rows; done += 250) {
      std::vector<TestRecord> records;
      for (int row = 0; row < 250; ++row)
        for (int i = 0; i < machines; ++i) records.push_back({.value = plant.row(i, night), .partition = i});
      REQUIRE(produce(broker.address, "night", records));
      given_ += 250;
      for (int i = 0; i < machines; ++i) {
        INFO(devices[i].process->errors());
        REQUIRE(wait_until([&] { return status(i)["rows_trained"] == given_; }, 60s));
      }
    }
  }
  [[nodiscard]] nlohmann::json status(int i) const {
    const auto page = runtime::http_get("127.0.0.1", devices[i].port, "/api/v1/status");
    auto said = page ? nlohmann::json::parse(page.value(), nullptr, false) : nlohmann::json();
    return said.is_object() ? said : nlohmann::json::object();
  }
  /// The list of events that the charts mark.
  [[nodiscard]] std::string marks(int i) const {
    const auto page = runtime::http_get("127.0.0.1", devices[i].port, "/");
    REQUIRE(page);
    const auto begin = page.value().find("<ul id=\"marks\">");
    if (begin == std::string::npos) return "";
    return page.value().substr(begin, page.value().find("</ul>", begin) - begin);
  }
  /// Accuracy of the exported model on unseen rows of that machine.
  [[nodiscard]] double accuracy_of_the_state(int i) {
    std::string rows;
    for (int row = 0; row < 2000; ++row) rows += plant.row(i, true) + "\n";
    folder.write("held-out.jsonl", rows);
    const auto said = rivulet_run({"evaluate", "--config", (folder.path() / "device.toml").string(),
                                   (folder.path() / "d0" / "final.state").string(),
                                   (folder.path() / "held-out.jsonl").string(), "--json"});
    REQUIRE_MESSAGE(said.status.code == 0, said.errors);
    return nlohmann::json::parse(said.output)["accuracy"].get<double>();
  }
  [[nodiscard]] double accuracy(int i) const { return status(i)["own"]["accuracy"].get<double>(); }

 private:
  int given_ = 0;
};

}  // namespace

TEST_CASE("Night: in the morning each page says what has happened to that machine, and the model is good") {
  Night it;
  it.resume(6000, false);
  for (int i = 0; i < machines; ++i) {
    INFO(it.devices[i].process->errors());
    CHECK(it.accuracy(i) > 0.95);
    CHECK(it.marks(i) == "");
  }
  it.resume(40'000, true);
  const std::string said[] = {it.marks(breaks), it.marks(other_unit), it.marks(season)};
  CHECK_MESSAGE(contains(said[breaks], "feature rms is constant"), said[breaks]);
  CHECK_MESSAGE(contains(said[other_unit], "feature temp has moved"), said[other_unit]);
  CHECK_MESSAGE(contains(said[season], "feature flow has moved"), said[season]);
  for (int i = 0; i < machines; ++i)
    for (int sensor = 0; sensor < 3; ++sensor) {
      const bool happened =
          (i == breaks && sensor == 1) || (i == other_unit && sensor == 0) || (i == season && sensor == 2);
      CAPTURE(said[i]);
      CHECK(contains(said[i], "feature " + std::string(sensors[sensor]) + " ") == happened);
    }
  for (auto& one : it.devices) one.process->send_signal(SIGTERM);
  for (auto& one : it.devices) {
    const auto ended = one.process->wait(60s);
    REQUIRE(ended);
    CHECK(ended->code == 0);
  }
  // Guessing has 0.5; without `rms` no model has more than 0.95.
  const char* figures[] = {"night.accuracy_of_breaks", "night.accuracy_of_other_unit",
                           "night.accuracy_of_season"};
  for (int i = 0; i < machines; ++i) {
    const double accuracy = it.accuracy_of_the_state(i);
    report_figure(figures[i], accuracy, "");
    CHECK(accuracy > 0.9);
  }
}
