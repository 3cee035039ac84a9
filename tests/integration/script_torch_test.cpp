// A user's model, saved by torch.jit: a group trains it with equal bits on all devices, and its export gives
// equal outputs in Python.
#include <torch/script.h>
// Before doctest: both define CHECK.
#undef CHECK
#include <doctest/doctest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "runtime/state/state_file.h"
#include "tests/support/device_group.h"
#include "tests/support/model_fixture.h"
#include "tests/support/model_outputs.h"
#include "tests/support/places.h"
#include "tests/support/process.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;
using Json = nlohmann::json;

namespace {

const std::string script = source_path("tests/support/models/digits.pt");

/// The keys that `rivulet model inspect` prints for the file.
std::vector<std::string> as_inspected() {
  const auto said = run_rivulet({"model", "inspect", script, "--shape", "1,28,28", "--json"}, 60s);
  INFO(said.errors);
  REQUIRE(said.status.code == 0);
  return {"--set", "model.name=torchscript",
          "--set", "model.file=" + script,
          "--set", "model.sha256=" + Json::parse(said.output)["sha256"].get<std::string>()};
}

struct Outputs {
  std::vector<double> python;  ///< of the exported file, by numpy
  std::vector<double> ours;    ///< of the device's saved state
};

std::vector<double> from_python(const std::string& exported, const std::string& rows) {
  std::vector<double> all;
  const Json parsed = outputs_in_python("torchscript", exported, rows, "1,28,28");
  for (const auto& row : parsed["outputs"])
    for (const auto& number : row) all.push_back(number.get<double>());
  return all;
}

Outputs outputs_of(const std::string& state_file, const std::string& exported, const std::string& rows_file) {
  auto config = config_of("torchscript");
  pin_script(config, script);
  config.input = {1, 28, 28};
  config.average_rows = 1;  // has an average: the export contains it
  const auto device = devices::make_host_device();
  const auto trainer = make_trainer(config, *device);
  auto state = runtime::read_state_file(
      state_file, {{"torchscript-" + config.settings.text("model.sha256").substr(0, 12), "mnist", {"mnist"}},
                   trainer->layout(),
                   *device});
  REQUIRE_MESSAGE(state, state.error().message);
  const Rows rows(config, 16, 23);
  write_features(rows, rows_file);
  const auto ours = trainer->predict(devices::averaged(state.value().state.model), rows.all()).value();
  return {from_python(exported, rows_file), {ours.begin(), ours.end()}};
}

}  // namespace

TEST_CASE("Script: a group trains a model of the user's, and Python gets it back with equal outputs") {
  const auto model = as_inspected();
  DeviceGroupOptions options;
  options.devices = 2;
  options.arguments = model;
  DeviceGroup group(options);
  group.start_all();
  REQUIRE_MESSAGE(group.formed(60s), group.story());
  group.feed(400);
  REQUIRE_MESSAGE(group.trained(40, 60s), group.story());
  const auto stopped = run_rivulet({"stop", "--job", "mnist", "--brokers", group.brokers()}, 60s);
  INFO(stopped.errors);
  REQUIRE(stopped.status.code == 0);
  for (const int device : {0, 1}) REQUIRE(group.device(device).wait(30s));  // each prints its summary last
  const std::string digest = group.summary(0)["devices"][0]["digest"];
  CHECK(digest.size() == 32);
  CHECK(digest == group.summary(1)["devices"][0]["digest"]);

  const TempDir folder;
  const auto path = [&](const std::string& name) { return (folder.path() / name).string(); };
  const std::string state = group.directory(0) + "/final.state";
  std::vector<std::string> exporting = {"checkpoint", "export", "--config",
                                        source_path("examples/mnist/device.toml")};
  exporting.insert(exporting.end(), model.begin(), model.end());
  exporting.insert(exporting.end(), {state, path("m.safetensors")});
  const auto done = run_rivulet(exporting, 60s);
  INFO(done.errors);
  REQUIRE(done.status.code == 0);
  const auto outputs = outputs_of(state, path("m.safetensors"), path("rows.f32"));
  REQUIRE(outputs.python.size() == 160);
  CHECK(relative_l2(outputs.python, outputs.ours) < 2e-6);  // the same terms added in another order
}

namespace {

/// 784 values to 10 classes, preceded by `body`.
std::string saved(const TempDir& folder, const std::string& body) {
  torch::jit::Module net("net");
  net.register_parameter("weight", torch::zeros({10, 784}).set_requires_grad(true), false);
  net.register_attribute("training", c10::BoolType::get(), true);
  net.define("def forward(self, x):\n" + body +
             "  return torch.matmul(torch.flatten(x, 1), self.weight.t())\n");
  const auto file = (folder.path() / "net.pt").string();
  net.save(file);
  return file;
}

/// `rivulet COMMAND` for the example's job, with this script as model.
std::vector<std::string> with_script(const std::string& command, const std::string& file) {
  auto config = config_of("torchscript");
  pin_script(config, file);
  return {command,
          "--config",
          source_path("examples/mnist/device.toml"),
          "--set",
          "model.name=torchscript",
          "--set",
          "model.file=" + file,
          "--set",
          "model.sha256=" + config.settings.text("model.sha256")};
}

std::vector<std::string> alone_with(const std::string& command, const std::string& file,
                                    const TempDir& folder) {
  auto all = with_script(command, file);
  for (const auto& more : {"--set", "source.type=synthetic", "--devices", "1", "--http", "off", "--data-dir"})
    all.emplace_back(more);
  all.push_back((folder.path() / "data").string());
  return all;
}

/// Ends a program during the trial of a script, and the process that runs the trial.
void end_in_trial(Process& program, int code) {
  const pid_t pid = program.pid();
  REQUIRE(wait_until([&] { return !children_of(pid).empty(); }, 20s));
  const pid_t apart = children_of(pid).front();
  program.send_signal(SIGTERM);
  const auto ended = program.wait(10s);
  REQUIRE(ended);
  CHECK(ended->code == code);
  CHECK_FALSE(read_process_stats(apart));
}

}  // namespace

TEST_CASE("Script: SIGTERM ends a run at once whose script never answers, and inspect ends by itself") {
  const TempDir folder;
  const auto file = saved(folder, "  n = 1\n  while n > 0:\n    n = n + int(x.size(0))\n");
  const auto device = start_rivulet(alone_with("run", file, folder));
  end_in_trial(*device, 0);
  const auto inspected = run_rivulet({"model", "inspect", file, "--shape", "1,28,28"}, 60s);
  CHECK(inspected.status.code == 1);
  CHECK(inspected.errors == "error: " + file + ": inspection did not finish within 30 s\n");
}

TEST_CASE("Script: SIGTERM ends a simulation at once whose script never answers") {
  const TempDir folder;
  const auto file = saved(folder, "  n = 1\n  while n > 0:\n    n = n + int(x.size(0))\n");
  const auto simulate = with_script("simulate", file);
  const auto simulation = start_rivulet(simulate);
  end_in_trial(*simulation, 1);
  CHECK(simulation->errors() == "error: interrupted before the first simulated second\n");
}

TEST_CASE("Script: validate refuses what would fail in training, and what it prints disturbs no result") {
  const TempDir folder;
  const auto file = saved(folder, "  print(\"here \\033[2J\")\n  assert x.size(0) <= 100, \"at most 100\"\n");
  auto arguments = alone_with("validate", file, folder);
  arguments.emplace_back("--json");
  const auto refused = run_rivulet(arguments, 90s);
  CHECK(refused.status.code == 78);
  const std::string problem = Json::parse(refused.output)["problems"][0]["message"];
  CHECK_MESSAGE(problem.starts_with("model.file = '" + file + "': LibTorch: "), problem);
  CHECK_MESSAGE(problem.find("at most 100") != std::string::npos, problem);
  CHECK(refused.errors.find("model.file prints: here \\u001b[2J\n") != std::string::npos);
  arguments.insert(arguments.end(), {"--set", "batch.max=100"});
  CHECK(run_rivulet(arguments, 90s).status.code == 0);
  const auto inspected = run_rivulet({"model", "inspect", file, "--shape", "1,28,28"}, 60s);
  CHECK(inspected.output.find("\nclasses = 10\n") != std::string::npos);
  CHECK(inspected.output.find("here") == std::string::npos);
}
