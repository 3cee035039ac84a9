// The agreed gradient of unequal batches equals that of the pooled batch: compares Worker and session with
// one process that computes on the concatenated rows.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "core/rng.h"
#include "tests/conformance/walls_suite.h"
#include "tests/support/sgd.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

std::vector<double> numbers(const GradientView& v) {
  if (v.scalar == Scalar::f64) {
    const auto s = v.as<double>();
    return {s.begin(), s.end()};
  }
  const auto s = v.as<float>();
  return {s.begin(), s.end()};
}

double relative_l2(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(difference / norm);
}

/// Trains the rows of all devices, concatenated per round, with one trainer.
std::vector<double> pooled(const WallsRun& run, const std::vector<RecordedRound>& rounds) {
  const auto& c = run.loaded.config;
  auto device = devices::make_host_device();
  devices::ModelConfig model;
  model.name = "linear";
  model.input = c.decode.shape;
  model.outputs = c.model.classes;
  model.scalar = c.model.dtype == "float64" ? Scalar::f64 : Scalar::f32;
  std::unique_ptr<devices::Trainer> trainer;
  for (const auto* entry : devices::builtin_models())
    if (entry->name == "linear") trainer = std::move(entry->make(model, *device)).value();
  auto state = std::move(devices::ModelState::create(trainer->layout(), *device)).value();
  REQUIRE(trainer->initialize(state, derive_seed(c.job.seed, "model")));
  auto memory = std::move(device->allocate(trainer->layout().contribution() * 8)).value();
  const auto gradient = memory->view(model.scalar, trainer->layout().contribution());
  const auto columns = static_cast<std::size_t>(c.decode.shape[0]);
  for (const auto& round : rounds) {
    if (round.plan.now.mode != sync::policy::Mode::gradients) continue;
    std::vector<float> features;
    std::vector<float> targets;
    for (std::size_t d = 0; d < round.table.size(); ++d) {
      const auto& used = round.table.facts[d].interval;
      for (std::int64_t o = used.first.offset; o < used.next.offset; ++o) {
        const auto bytes = linear_row(c.job.seed, d, static_cast<std::size_t>(o), columns, c.model.classes);
        std::vector<float> row(columns + 1);
        std::memcpy(row.data(), bytes.data(), bytes.size());
        targets.push_back(row[0]);
        features.insert(features.end(), row.begin() + 1, row.end());
      }
    }
    const std::vector<RowTag> tags(targets.size());
    REQUIRE(trainer->compute_gradients(state, {features, targets, targets.size(), tags}, gradient));
    devices::sgd_step(state, gradient, {c.train.lr, 0.9, 0, 0}, 1.0);
  }
  return numbers(state.parameters());
}

double gap(const std::string& dtype, const std::string& reduction, std::uint32_t devices) {
  WallsRun run = walls_run("scripted", devices, 25);
  run.loaded.config.model.dtype = dtype;
  run.loaded.config.sync.collective = reduction;
  std::vector<RecordedRound> rounds;
  runtime::SimulatedParts parts;
  const PartsCatalog catalog;
  parts.catalog = catalog.catalog();
  parts.source = [&](std::size_t d, const Clock& clock) {
    return linear_source(run.loaded.config, d, 1000, clock);
  };
  parts.decisions = [&](std::size_t d) -> std::unique_ptr<runtime::DecisionLog> {
    if (d == 0) return std::make_unique<RecordingDecisions>(rounds);
    return runtime::make_null_decision_log();
  };
  runtime::SimulateOptions options;
  options.stop_after = run.stop_after;
  auto group = build_group(run.loaded, options, std::move(parts));
  run_to_end(*group);
  CHECK(group->node(0).state().stamp.step == 25);
  bool zero_rows = false;
  for (const auto& r : rounds)
    for (const auto& f : r.table.facts)
      zero_rows = zero_rows || (f.rows == 0 && r.plan.now.mode == sync::policy::Mode::gradients);
  CHECK(zero_rows);
  return relative_l2(numbers(group->node(0).state().model.parameters()), pooled(run, rounds));
}

}  // namespace

TEST_CASE("Pooled: 25 steps of unequal batches, zero-row devices included, are those of the pooled batches") {
  for (const char* reduction : {"gather", "sum"}) {
    for (const std::uint32_t devices : {2U, 3U, 4U, 5U}) {
      INFO(reduction, ", ", devices, " devices");
      const double f64 = gap("float64", reduction, devices);
      const double f32 = gap("float32", reduction, devices);
      CHECK(f64 <= 1e-12);
      CHECK(f32 <= 1e-5);
      CHECK(f32 > 0);  // rounding differs, so the two computations are independent
    }
  }
}
