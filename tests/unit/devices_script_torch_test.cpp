// Models of users, saved by torch.jit: their values, names and gradients, and rejected ones.
#include <torch/script.h>
#include <torch/torch.h>
// Before doctest: both define CHECK.
#undef CHECK
#include <doctest/doctest.h>

#include <atomic>
#include <fstream>
#include <string>

#include "devices/script_file.h"
#include "tests/support/model_fixture.h"
#include "tests/support/sgd.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::devices;
using namespace rivulet::testing;

namespace {

torch::jit::Module layer(std::int64_t in, std::int64_t out, const std::string& name) {
  torch::jit::Module made(name);
  made.register_parameter("weight", torch::randn({out, in}).div_(4).set_requires_grad(true), false);
  made.register_parameter("bias", torch::randn({out}).div_(4).set_requires_grad(true), false);
  made.define("def forward(self, x):\n  return torch.addmm(self.bias, x, self.weight.t())\n");
  return made;
}

/// 12 -> 16 -> `outputs`, with a buffer that every training pass updates, as in batch norm.
void save_model(const std::string& path, std::int64_t outputs = 10) {
  torch::manual_seed(7);
  torch::jit::Module net("net");
  net.register_module("first", layer(12, 16, "first"));
  net.register_module("last", layer(16, outputs, "last"));
  net.register_buffer("seen", torch::zeros({3}));
  net.register_attribute("training", c10::BoolType::get(), true);
  net.define(R"(
def forward(self, x):
  if self.training:
    self.seen.add_(1.0)
  return self.last.forward(torch.relu(self.first.forward(x)))
)");
  net.save(path);
}

struct Script {
  explicit Script(std::int64_t outputs = 10) {
    file = (folder.path() / "model.pt").string();
    save_model(file, outputs);
    config = config_of("torchscript");
    config.settings.set("model.file", file);
    const auto facts = inspect_script(file, config.input);
    REQUIRE_MESSAGE(facts, facts.error().message);
    config.settings.set("model.sha256", facts.value().sha256);
  }
  [[nodiscard]] Result<ModelNeeds> tried(const Trial& trial = {}) const {
    return model_entry("torchscript").try_out(config, trial);
  }
  [[nodiscard]] Error refusal(const Trial& trial = {}) const {
    const auto needs = tried(trial);
    REQUIRE(!needs);
    return needs.error();
  }
  /// Replaces the file by `net`.
  void take(const torch::jit::Module& net) {
    net.save(file);
    pin_script(config, file);
  }
  TempDir folder;
  std::string file;
  ModelConfig config;
  std::unique_ptr<Device> device = make_host_device();
};

const TensorSlot& slot_of(const std::vector<TensorSlot>& slots, const std::string& name) {
  for (const auto& slot : slots)
    if (slot.name == name) return slot;
  FAIL("no such tensor: " << name);
  return slots.front();
}

torch::Tensor tensor_at(const GradientView& flat, const std::vector<TensorSlot>& slots,
                        const std::string& name) {
  const auto& slot = slot_of(slots, name);
  return torch::from_blob(flat.slice(slot.begin, slot.count).data, slot.shape, torch::kFloat32);
}

}  // namespace

TEST_CASE("Script: parameters have the file's names, shapes and numbers, whatever the seed") {
  const Script script;
  const auto trainer = make_trainer(script.config, *script.device);
  const auto& layout = trainer->layout();
  CHECK(layout.parameters == 12 * 16 + 16 + 16 * 10 + 10);
  CHECK(layout.buffers == 3);
  CHECK(slot_of(layout.parameter_slots, "first.weight").shape == std::vector<std::int64_t>{16, 12});
  const auto one = make_state(*trainer, *script.device, 1);
  const auto two = make_state(*trainer, *script.device, 2);
  CHECK(digest_of_state(one, *script.device) == digest_of_state(two, *script.device));
  auto loaded = torch::jit::load(script.file);
  for (const auto& item : loaded.named_parameters())
    CHECK_MESSAGE(tensor_at(one.parameters(), layout.parameter_slots, item.name).equal(item.value),
                  item.name);
}

TEST_CASE("Script: gradients are those of the library's own pass over the file") {
  const Script script;
  const auto trainer = make_trainer(script.config, *script.device);
  const auto& layout = trainer->layout();
  const auto state = make_state(*trainer, *script.device, 1);
  const auto memory = make_contribution(layout, *script.device);
  const auto out = view_of(*memory, layout);
  const Rows rows(script.config, 32, 3);
  const auto report = trainer->compute_gradients(state, rows.all(), out);
  REQUIRE(report);
  auto loaded = torch::jit::load(script.file);
  loaded.train();
  const auto features = torch::from_blob(rows.features().data(), {32, 12});
  const auto targets = torch::from_blob(rows.targets().data(), {32}).to(torch::kInt64);
  const auto loss = torch::nn::functional::cross_entropy(loaded.forward({features}).toTensor(), targets);
  loss.backward();
  CHECK(report.value().loss_sum == doctest::Approx(32 * loss.item<double>()));
  for (const auto& item : loaded.named_parameters()) {
    const auto ours = tensor_at(out, layout.parameter_slots, item.name);
    CHECK_MESSAGE(torch::allclose(ours, item.value.grad(), 1e-5, 1e-7), item.name);
  }
  const auto seen = tensor_at(out.slice(layout.parameters, layout.buffers), layout.buffer_slots, "seen");
  CHECK(seen.equal(torch::ones({3})));  // of this pass; the state's own is unchanged
  CHECK(tensor_at(state.buffers(), layout.buffer_slots, "seen").equal(torch::zeros({3})));
}

TEST_CASE("Script: twenty steps on one trainer and on another are the same bits") {
  const Script script;
  std::vector<Digest> ends;
  for (int i = 0; i < 2; ++i) {
    const auto trainer = make_trainer(script.config, *script.device);
    auto state = make_state(*trainer, *script.device, 1);
    const auto memory = make_contribution(trainer->layout(), *script.device);
    const auto out = view_of(*memory, trainer->layout());
    const Rows rows(script.config, 20 * 16, 4);
    double first = 0;
    double last = 0;
    for (std::size_t step = 0; step < 20; ++step) {
      const auto report = trainer->compute_gradients(state, rows.view(0, 16), out);
      REQUIRE(report);
      devices::sgd_step(state, out, {}, 1.0);
      (step == 0 ? first : last) = report.value().loss_sum;
    }
    CHECK(last < first);
    ends.push_back(digest_of_state(state, *script.device));
  }
  CHECK(ends[0] == ends[1]);
}

TEST_CASE("Script: what it takes is measured: parameters, and what a row costs") {
  const Script script;
  const auto tried = script.tried();
  REQUIRE_MESSAGE(tried, tried.error().message);
  const auto& needs = tried.value();
  CHECK(needs.parameters == 378);
  CHECK(needs.per_row >= 16 + 10);  // a minimum: the outputs of its layers
  CHECK(needs.per_row < 100 * (16 + 10));
}

TEST_CASE("Script: a file that is not the pinned one, or no model of such rows, is refused with its name") {
  Script script;
  const std::string right = script.config.settings.text("model.sha256");
  script.config.settings.set("model.sha256", std::string(64, '0'));
  CHECK(script.refusal().code == ErrorCode::invalid_config);
  CHECK(contains(script.refusal().message, "its sha256 is " + right));
  script.config.settings.set("model.sha256", right);
  script.config.outputs = 7;
  CHECK(contains(script.refusal().message, "[2, 10], expected [2, 7]"));
  script.config.outputs = 10;
  script.config.input = {13};
  CHECK(contains(script.refusal().message, script.file));
  script.config.input = {12};
  script.config.settings.set("model.file", script.file + ".gone");
  CHECK(contains(script.refusal().message, "cannot be read"));
}

TEST_CASE("Script: what torch.jit did not save is refused") {
  const TempDir folder;
  for (const std::string& bytes : {std::string(), std::string("no model"), std::string(1000, '\0')}) {
    const auto file = folder.write("model.pt", bytes).string();
    const auto facts = inspect_script(file, std::vector<std::int64_t>{12});
    REQUIRE(!facts);
    CHECK(facts.error().code == ErrorCode::io);
    CHECK(contains(facts.error().message, file));
  }
  CHECK_FALSE(inspect_script(folder.path().string(), std::vector<std::int64_t>{12}));
}

TEST_CASE("Script: a frozen parameter is refused, for the agreed state holds all of them") {
  torch::jit::Module net("frozen");
  net.register_parameter("weight", torch::randn({10, 12}).set_requires_grad(false), false);
  net.define("def forward(self, x):\n  return torch.matmul(x, self.weight.t())\n");
  Script script;
  script.take(net);
  CHECK(contains(script.refusal().message, "parameter 'weight' is frozen"));
}

namespace {

/// 12 -> 10, preceded by `body`.
torch::jit::Module with_body(const std::string& body) {
  torch::jit::Module net("net");
  net.register_parameter("weight", torch::randn({10, 12}).set_requires_grad(true), false);
  net.register_attribute("training", c10::BoolType::get(), true);
  net.define("def forward(self, x):\n" + body + "  return torch.matmul(x, self.weight.t())\n");
  return net;
}

}  // namespace

TEST_CASE("Script: one that never answers is ended at the deadline, and as soon as somebody asks to stop") {
  Script script;
  script.take(with_body("  n = 1\n  while n > 0:\n    n = n + int(x.size(0))\n"));
  Trial trial;
  trial.patience.deadline = std::chrono::seconds(1);
  const auto late = script.refusal(trial);
  CHECK(late.code == ErrorCode::invalid_config);
  CHECK(late.message == "model.file = '" + script.file + "': the trial did not finish within 1 s");
  const std::atomic<int> stop{1};
  trial.patience = {.deadline = std::chrono::minutes(10), .stop = &stop};
  CHECK(script.refusal(trial).code == ErrorCode::cancelled);
}

TEST_CASE(
    "Script: what fails with the rows of a whole batch, or in training alone, is refused with its reason") {
  Script script;
  const auto refuse = [&](const std::string& body, const Trial& trial) {
    script.take(with_body(body));
    const auto error = script.refusal(trial);
    CHECK(error.code == ErrorCode::invalid_config);
    CHECK_MESSAGE(error.message.starts_with("model.file = '" + script.file + "': LibTorch: "), error.message);
    CHECK_FALSE(contains(error.message, "\n"));
    return error.message;
  };
  const auto many = refuse("  assert x.size(0) <= 20, 'at most 20'\n", {1, 64});
  CHECK_MESSAGE(contains(many, "at most 20 ("), many);
  CHECK_MESSAGE(many.ends_with("; the trial batch has 64 rows of zeros"), many);
  const auto one = refuse("  assert x.size(0) > 1, 'two, please'\n", {1, 64});
  CHECK_MESSAGE(contains(one, "two, please"), one);
  CHECK_MESSAGE(one.ends_with("; the trial batch has 1 row of zeros"), one);
  const auto training = refuse("  assert not self.training, 'no \\033[2J'\n", {1, 64});
  CHECK_MESSAGE(contains(training, "no \\u001b[2J ("), training);
  script.take(with_body("  assert x.size(0) > 1, 'two, please'\n"));
  CHECK(script.tried({2, 64}));
}

TEST_CASE("Script: one that unpacks to more than the memory is refused before it is loaded") {
  Script script;
  torch::jit::Module net = with_body("");
  net.register_buffer("large", torch::zeros({1'000'000}));
  script.take(net);
  CHECK(script.tried({1, 2, 8e6}));
  CHECK(contains(script.refusal({1, 2, 3.9e6}).message, "unpacks to 4 MB, more than device.memory = 4 MB"));
}

TEST_CASE("Script: inspect says what is in a file and runs it once") {
  const Script script;
  const auto facts = inspect_script(script.file, std::vector<std::int64_t>{12});
  REQUIRE(facts);
  CHECK(facts.value().sha256.size() == 64);
  CHECK(facts.value().bytes == read_file(script.file).size());
  CHECK(contains(facts.value().signature, "forward("));
  CHECK(facts.value().parameters.size() == 4);
  CHECK(facts.value().parameter_numbers == 378);
  CHECK(facts.value().buffer_numbers == 3);
  CHECK(facts.value().outputs == 10);
  CHECK(facts.value().one_row.empty());
  CHECK(facts.value().forward_ms > 0);
  CHECK_FALSE(inspect_script(script.file, std::vector<std::int64_t>{13}));
}

namespace {

const std::vector<std::int64_t> twelve{12};

/// Error of inspect for a file; empty: none.
std::string objection(const std::string& file) {
  const auto facts = inspect_script(file, twelve);
  return facts ? "" : facts.error().message;
}

}  // namespace

TEST_CASE(
    "Script: inspect refuses what a device refuses: a frozen parameter, other than one list of outputs") {
  Script script;
  torch::jit::Module frozen("frozen");
  frozen.register_parameter("weight", torch::randn({10, 12}).set_requires_grad(true), false);
  frozen.register_parameter("bias", torch::randn({10}).set_requires_grad(false), false);
  frozen.define("def forward(self, x):\n  return torch.matmul(x, self.weight.t()) + self.bias\n");
  script.take(frozen);
  CHECK(contains(objection(script.file), "parameter 'bias' is frozen: register it as a buffer"));
  torch::jit::Module twice("twice");
  twice.register_parameter("weight", torch::randn({10, 12}).set_requires_grad(true), false);
  twice.define(
      "def forward(self, x):\n  y = torch.matmul(x, self.weight.t())\n  return torch.stack([y, y], 1)\n");
  script.take(twice);
  CHECK(contains(objection(script.file),
                 "forward() on 2 rows returns shape [2, 2, 10], expected [2, OUTPUTS]"));
  script.take(with_body("  assert not self.training, 'never trained'\n"));
  CHECK(contains(objection(script.file), "never trained"));
}

TEST_CASE("Script: inspect says when a single row is too few to train with, and why") {
  Script script;
  script.take(with_body("  assert x.size(0) > 1 or not self.training, 'two, please'\n"));
  const auto facts = inspect_script(script.file, twelve);
  REQUIRE_MESSAGE(facts, facts.error().message);
  CHECK(contains(facts.value().one_row, "two, please"));
  CHECK(script.tried({2, 64}));
  CHECK_FALSE(script.tried({1, 64}));
}

TEST_CASE(
    "Script: tensors without a module, as torch.save writes a state_dict, are told from a damaged file") {
  c10::Dict<std::string, torch::Tensor> tensors;
  tensors.insert("weight", torch::ones({10, 12}));
  const auto bytes = torch::pickle_save(tensors);
  const TempDir folder;
  const auto file = folder.write("weights.pt", std::string(bytes.begin(), bytes.end())).string();
  const auto said = objection(file);
  CHECK_MESSAGE(contains(said, "torch.save(model.state_dict()) writes them: save torch.jit.script(model)"),
                said);
}
