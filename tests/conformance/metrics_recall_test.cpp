// Compares a device's metrics on held-out rows with values computed by hand.
#include "core/clock.h"
#include "devices/device.h"
#include "runtime/config/config.h"
#include "runtime/node/catalog.h"
#include "runtime/node/evaluator.h"
#include "runtime/process/log.h"
#include "runtime/status/metrics/prometheus_sink.h"
#include "tests/conformance/metrics_typed.h"
#include "tests/support/temp_dir.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

/// Predicts the class given by a row's only feature.
struct Echo final : devices::Trainer {
  [[nodiscard]] const devices::ModelLayout& layout() const noexcept override { return layout_; }
  Status initialize(devices::ModelState&, std::uint64_t) override { return ok(); }
  Result<devices::StepReport> compute_gradients(const devices::ModelState&, const BatchView&,
                                                GradientView) override {
    return devices::StepReport{};
  }
  Result<devices::StepReport> evaluate(const devices::ModelState&, const BatchView&) override {
    return devices::StepReport{};
  }
  Result<std::vector<float>> predict(const devices::ModelState&, const BatchView& batch) override {
    std::vector<float> outputs(batch.rows * 3, 0);
    for (std::size_t row = 0; row < batch.rows; ++row)
      outputs[row * 3 + static_cast<std::size_t>(batch.features[row])] = 1;
    return outputs;
  }
  devices::ModelLayout layout_{.parameters = 1};
};

}  // namespace

TEST_CASE("Measured: what a model recognizes of held-out rows, class by class") {
  const TempDir folder;
  // Class ok has 4 rows, 3 recognized; fault 2 and 1; jammed none, so it has no recall.
  const auto file = folder.write("held-out.csv", "0,ok\n0,ok\n0,ok\n1,ok\n1,fault\n2,fault\n");
  ConfigInput input;
  input.flags = {{"job.name", "\"j\""},
                 {"job.devices", "1"},
                 {"source.type", "\"synthetic\""},
                 {"decode.format", "\"csv\""},
                 {"decode.csv.columns", "[\"x\", \"y\"]"},
                 {"decode.csv.features", "[\"x\"]"},
                 {"decode.csv.target", "\"y\""},
                 {"decode.csv.scale", "1"},
                 {"decode.csv.classes", "[\"ok\", \"fault\", \"jammed\"]"},
                 {"model.name", "\"linear\""}};
  const auto loaded = load_config(input);
  REQUIRE_MESSAGE(loaded.usable(), loaded.problems.front().message);
  const auto rows = HeldOut::open(loaded.config, builtin_catalog(), file.string(), 100);
  REQUIRE_MESSAGE(rows, rows.error().message);
  const auto sink = make_prometheus_sink();
  const auto aside = make_prometheus_sink();  // counts log lines separately
  auto log = make_logger("error", "logfmt", *aside);
  const auto device = devices::make_host_device();
  Echo trainer;
  auto model = devices::ModelState::create(trainer.layout(), *device).value();
  SnapshotSlot snapshots(devices::ModelState::create(trainer.layout(), *device).value());
  VirtualClock clock;
  NodeStatus status(*sink);
  Evaluator evaluator({clock, trainer, *rows.value(), snapshots, status, *sink, *log.value(),
                       std::chrono::seconds(5), loaded.config.decode.classes});
  clock.advance_by(std::chrono::seconds(5));
  evaluator.step();  // requests the model
  snapshots.offer(model, 1, 5.0);
  evaluator.step();
  CHECK(status.held_out_accuracy.load() == doctest::Approx(4.0 / 6));
  MetricSheet sheet = read_sheet(sink->scrape());
  std::erase_if(sheet, [](const auto& series) { return !series.first.starts_with("eval_"); });
  check_sheet(sheet, read_typed("recall"));
}
