// Python's own library loads the output of `rivulet checkpoint export`, and computes the same outputs.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/config/config.h"
#include "runtime/node/node.h"
#include "runtime/node/node_config.h"
#include "runtime/state/state_file.h"
#include "tests/support/device_group.h"
#include "tests/support/effort.h"
#include "tests/support/model_fixture.h"
#include "tests/support/model_outputs.h"
#include "tests/support/places.h"
#include "tests/support/sgd.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;
using namespace std::chrono_literals;
using Json = nlohmann::json;

namespace {

constexpr std::size_t rows_compared = 16;

/// A model after a few steps, so that batch norm's statistics and every bias have changed.
devices::ModelState trained(devices::Trainer& trainer, const devices::ModelConfig& config,
                            devices::Device& device) {
  auto state = make_state(trainer, device, 7);
  const auto memory = make_contribution(trainer.layout(), device);
  const auto out = view_of(*memory, trainer.layout());
  const Rows rows(config, 64, 11);
  for (int step = 0; step < 5; ++step) {
    REQUIRE(trainer.compute_gradients(state, rows.all(), out));
    devices::sgd_step(state, out, {0.05, 0.9, 0, 0}, 1.0);
  }
  return state;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const auto n : shape) text += (text.empty() ? "" : ",") + std::to_string(n);
  return text;
}

bool skips(const devices::ModelConfig& config) {
  return config.settings.flag("model.mlp.skip");
}

/// One model on its way: C++ -> state file -> export -> Python.
struct Exported {
  explicit Exported(const devices::ModelConfig& model) : config(model) {
    trainer = make_trainer(config, *device);
    AgreedState state{trained(*trainer, config, *device), {4, 1234}, 56'789, {}};
    digest = digest_of(state, *device).value();
    const Rows rows(config, rows_compared, 23);
    expected = trainer->predict(state.model, rows.all()).value();
    write_features(rows, path("rows.f32"));
    folder.write("device.toml",
                 "version = 1\n[job]\nname = \"t\"\n[decode.raw]\nshape = [" + shape_text(config.input) +
                     "]\n[model]\nname = \"" + config.name +
                     "\"\nmlp = { hidden = [16, 8], skip = " + (skips(config) ? "true" : "false") +
                     " }\ndtype = \"" + (config.scalar == Scalar::f64 ? "float64" : "float32") + "\"\n");
    ConfigInput input;
    input.file = path("device.toml");
    input.needs_stream = false;
    const Config job = load_config(input).config;
    const auto decoder = build_decoder(job, builtin_catalog());
    REQUIRE_MESSAGE(decoder, decoder.error().message);
    REQUIRE(write_state_file(path("a.state"), owner_of(job, *decoder.value()), state, digest));
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder.path() / name).string(); }

  std::string exported(const std::string& to) {
    const auto done = run_rivulet(
        {"checkpoint", "export", "--config", path("device.toml"), path("a.state"), path(to)}, 60s);
    INFO(done.errors);
    REQUIRE(done.status.code == 0);
    return read_file(path(to));
  }
  Json in_python(const std::string& file) {
    return outputs_in_python(config.name, path(file), path("rows.f32"), shape_text(config.input));
  }

  TempDir folder;
  devices::ModelConfig config;
  std::unique_ptr<devices::Device> device = devices::make_host_device();
  std::unique_ptr<devices::Trainer> trainer;
  Digest digest;
  std::vector<float> expected;  ///< outputs, row by row
};

void check_tensors(const Json& said, const devices::ModelLayout& layout) {
  auto slots = layout.parameter_slots;
  slots.insert(slots.end(), layout.buffer_slots.begin(), layout.buffer_slots.end());
  CHECK(said["tensors"].size() == slots.size() + layout.batch_counts.size());
  for (const auto& name : layout.batch_counts) {
    REQUIRE_MESSAGE(said["tensors"].contains(name), name);
    CHECK(said["tensors"][name] == Json{"int64", Json::array()});
  }
  const std::string type = layout.scalar == Scalar::f32 ? "float32" : "float64";
  for (const auto& slot : slots) {
    INFO(slot.name);
    REQUIRE(said["tensors"].contains(slot.name));
    CHECK(said["tensors"][slot.name] == Json{type, slot.shape});
  }
}

}  // namespace

TEST_CASE("Export: Python loads every model by its names and shapes, and its outputs are the same") {
  double worst = 0;
  auto skipping = config_of("mlp");
  set_skip(skipping, true);
  for (const auto& config : {config_of("linear"), config_of("linear", Scalar::f64), config_of("mlp"),
                             skipping, config_of("lenet5"), config_of("cnn")}) {
    const std::string& model = config.name;
    CAPTURE(model);
    Exported one(config);
    const auto bytes = one.exported("a.safetensors");
    CHECK(bytes == one.exported("b.safetensors"));
    const auto said = one.in_python("a.safetensors");
    const Json expected{{"format", "pt"},
                        {"model", model},
                        {"stamp", "4.1234"},
                        {"digest", one.digest.hex()},
                        {"rows", "56789"},
                        {"shape", Json(one.config.input).dump()},
                        {"classes", R"(["0","1","2","3","4","5","6","7","8","9"])"},
                        {"normalization", "none"}};
    for (const auto& [name, text] : expected.items()) CHECK_MESSAGE(said["metadata"][name] == text, name);
    check_tensors(said, one.trainer->layout());
    REQUIRE(said["outputs"].size() == rows_compared);
    std::vector<double> theirs;
    for (const auto& row : said["outputs"])
      for (const auto& number : row) theirs.push_back(number.get<double>());
    const std::vector<double> ours(one.expected.begin(), one.expected.end());
    REQUIRE(theirs.size() == ours.size());
    const double off = relative_l2(theirs, ours);
    CHECK(off < 2e-6);  // the same terms added in another order
    worst = std::max(worst, off);
  }
  report_figure("export.outputs_relative_l2", worst, "");
}

TEST_CASE("Export: of a folder the newest usable checkpoint is taken; a damaged one is not exported") {
  Exported one(config_of("linear"));
  const auto out = one.path("m.safetensors");
  const auto exporting = [&](const std::string& from) {
    return run_rivulet({"checkpoint", "export", "--config", one.path("device.toml"), from, out, "--json"},
                       60s);
  };
  const auto checkpoints = one.folder.path() / "checkpoints";
  std::filesystem::create_directories(checkpoints);
  const auto empty = exporting(one.folder.path().string());
  CHECK(empty.status.code == 1);
  CHECK(contains(empty.errors, "no usable checkpoint"));
  std::filesystem::copy_file(one.path("a.state"), checkpoints / "4.1234.ckpt");
  for (const auto& from : {one.folder.path().string(), checkpoints.string()}) {
    const auto done = exporting(from);
    REQUIRE(done.status.code == 0);
    CHECK(Json::parse(done.output)["step"] == 1234);
  }
  const auto before = read_file(out);
  std::filesystem::resize_file(one.path("a.state"), 500);
  const auto torn = exporting(one.path("a.state"));
  CHECK(torn.status.code == 1);
  CHECK(contains(torn.errors, one.path("a.state")));
  CHECK(read_file(out) == before);
  const auto nowhere = run_rivulet({"checkpoint", "export", "--config", one.path("device.toml"),
                                    checkpoints.string(), one.path("no/folder/m.safetensors")},
                                   60s);
  CHECK(nowhere.status.code == 69);
  CHECK(contains(nowhere.errors, "no/folder/m.safetensors"));
}

TEST_CASE("Prune: keeps what can be used, and leaves a running device's folder alone") {
  const TempDir folder;
  const auto config = source_path("examples/mnist/device.toml");
  const auto on_device = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--config", config, "--set", "model.name=linear", "--data-dir",
                                       folder.path().string()});
    return arguments;
  };
  const auto prune = [&](const std::vector<std::string>& more) {
    auto arguments = on_device({"checkpoint", "prune", "--json"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_rivulet(arguments, 60s);
  };
  const auto none = prune({});
  CHECK(none.status.code == 1);
  CHECK(contains(none.errors, "no device saved a checkpoint"));
  CHECK(std::filesystem::is_empty(folder.path()));

  auto running = start_rivulet(on_device({"run", "--set", "source.type=synthetic", "--devices", "1", "--http",
                                          "off", "--set", "checkpoint.every.rounds=1"}));
  const auto files = [&] {
    std::size_t n = 0;
    std::error_code gone;
    for (const auto& file : std::filesystem::directory_iterator(folder.path() / "checkpoints", gone))
      n += file.path().extension() == ".ckpt" ? 1 : 0;
    return n;
  };
  REQUIRE(wait_until([&] { return files() >= 3; }, 30s));
  const auto refused = prune({"--keep", "1"});
  CHECK(refused.status.code == 78);
  CHECK(contains(refused.errors, "in use"));
  running->send_signal(SIGTERM);
  REQUIRE(running->wait(30s));
  CHECK(files() >= 3);

  const auto done = prune({"--keep", "1"});
  CHECK(done.status.code == 0);
  const auto kept = Json::parse(done.output)["kept"].size();  // the newest, and the best
  CHECK((kept == 1 || kept == 2));
  CHECK(files() == kept);
  CHECK(prune({"--keep", "0"}).status.code == 2);
}
