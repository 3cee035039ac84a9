#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "core/check.h"
#include "core/rng.h"
#include "stream/open.h"
#include "sync/membership/membership.h"
#include "tests/conformance/walls_suite.h"
#include "tests/support/copying_device.h"
#include "tests/support/model_fixture.h"
#include "tests/support/sgd.h"
#include "tests/support/wrapped_source.h"

namespace rivulet::testing {
namespace {

PartsCatalog catalog_for(const WallsRun& run) {
  PartsCatalog parts;
  if (run.copying_device) parts.add(copying_linear);
  return parts;
}

/// Delivers its first records after 300 ms, as a loaded machine does.
struct LateSource final : WrappedSource {
  using WrappedSource::WrappedSource;
  Result<std::span<const Record>> poll(std::size_t max, Duration wait) override {
    if (!std::exchange(came_, true)) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return inner->poll(max, wait);
  }

 private:
  bool came_ = false;
};

std::unique_ptr<stream::RecordSource> source_for(const WallsRun& run, std::size_t device,
                                                 const Clock& clock) {
  if (!run.row) return linear_source(run.loaded.config, device, run.records, clock);
  return prepared_source(device, run.records, [&](std::size_t i) { return run.row(device, i); }, clock);
}

void take(GroupOutcome& out, runtime::Node& node) {
  const auto digest = runtime::digest_of(node.state(), node.device());
  out.digests.push_back(digest ? digest.value().hex() : digest.error().message);
  out.steps.push_back(node.state().stamp.step);
  out.group_rows.push_back(node.state().rows);
  out.rows_trained.push_back(node.status().rows_trained.load());
  out.rows_refused.push_back(node.status().rows_dropped[DropReason::nonfinite_batch].load());
  out.rows_consumed.push_back(node.status().rows_consumed.load());
  out.rows_waiting.push_back(node.rows().waiting());
  out.errors.push_back(node.worker().ending().error);
  out.partitions.push_back(node.state().partitions);
  if (out.digests.size() > 1) return;
  const auto host = node.device().to_host(node.state().model.parameters());
  if (host && host.value().scalar == Scalar::f32) {
    const auto p = host.value().as<float>();
    out.parameters.assign(p.begin(), p.end());
  }
  out.early_used = node.status().early_payloads[runtime::EarlyPayload::used].load();
  out.early_wasted = node.status().early_payloads[runtime::EarlyPayload::wasted].load();
  if (const auto* copying = dynamic_cast<CopyingDevice*>(&node.device()))
    out.copies_to_host = copying->copies_to_host();
}

std::unique_ptr<runtime::DecisionLog> decisions_for(std::size_t device, std::vector<RecordedRound>& rounds) {
  if (device == 0) return std::make_unique<RecordingDecisions>(rounds);
  return runtime::make_null_decision_log();
}

}  // namespace

GroupOutcome run_simulated(const WallsRun& run) {
  GroupOutcome out;
  const PartsCatalog parts = catalog_for(run);
  runtime::SimulatedParts outside;
  outside.catalog = parts.catalog();
  outside.source = [&](std::size_t device, const Clock& clock) { return source_for(run, device, clock); };
  outside.decisions = [&](std::size_t device) { return decisions_for(device, out.rounds); };
  if (run.copying_device)
    outside.device = [](std::size_t, VirtualClock&) { return std::make_unique<CopyingDevice>(); };
  runtime::SimulateOptions options;
  options.stop_after = run.stop_after;
  options.link = {std::chrono::milliseconds(1), 1e8};
  auto group = build_group(run.loaded, options, std::move(outside));
  group->run_until([&] { return group->seconds() > 600; });
  for (std::size_t i = 0; i < group->size(); ++i) take(out, group->node(i));
  return out;
}

std::vector<float> local_sgd(const WallsRun& run, const std::vector<std::size_t>& steps_of_round,
                             std::size_t rows) {
  const auto& c = run.loaded.config;
  const auto device = devices::make_host_device();
  devices::ModelConfig config;
  config.name = c.model.name;
  config.input = c.decode.shape;
  config.outputs = c.model.classes;
  config.settings = c.settings;
  const auto trainer = make_trainer(config, *device);
  auto agreed = make_state(*trainer, *device, derive_seed(c.job.seed, "model"));
  std::vector<devices::ModelState> copies;  // each with local momentum
  for (std::size_t d = 0; d < c.job.devices.max; ++d) copies.push_back(make_state(*trainer, *device, 0));
  const auto memory = make_contribution(trainer->layout(), *device);
  const auto gradient = view_of(*memory, trainer->layout());
  const auto numbers = agreed.parameters().as<float>();
  const auto columns = static_cast<std::size_t>(c.decode.shape[0]);
  std::size_t first_row = 0;
  for (const std::size_t steps : steps_of_round) {
    std::vector<double> moved(numbers.size());
    for (std::size_t d = 0; d < c.job.devices.max; ++d) {
      auto& own = copies[d];
      std::ranges::copy(numbers, own.parameters().as<float>().begin());
      for (std::size_t step = 0; step < steps; ++step) {
        std::vector<float> features(rows * columns);
        std::vector<float> targets(rows);
        for (std::size_t i = 0; i < rows; ++i) {
          const auto bytes = linear_row(c.job.seed, d, first_row + step * rows + i, columns, c.model.classes);
          std::memcpy(&targets[i], bytes.data(), sizeof(float));
          std::memcpy(&features[i * columns], bytes.data() + sizeof(float), columns * sizeof(float));
        }
        const std::vector<RowTag> tags(rows);
        RIVULET_CHECK(trainer->compute_gradients(own, {features, targets, rows, tags}, gradient), "computes");
        devices::sgd_step(own, gradient, {c.train.lr, c.settings.number("train.optimizer.momentum"), 0, 0});
      }
      const auto there = own.parameters().as<float>();
      for (std::size_t i = 0; i < moved.size(); ++i)
        moved[i] += (double{there[i]} - double{numbers[i]}) / static_cast<double>(c.job.devices.max);
    }
    for (std::size_t i = 0; i < moved.size(); ++i)
      numbers[i] = static_cast<float>(double{numbers[i]} + moved[i]);
    first_row += steps * rows;
  }
  return {numbers.begin(), numbers.end()};
}

GroupOutcome run_on_threads(const WallsRun& run,
                            const std::function<sync::Connect(std::size_t)>& connect_of) {
  GroupOutcome out;
  const PartsCatalog parts = catalog_for(run);
  const RealClock clock;
  sync::membership::MemoryLog log;
  std::vector<std::unique_ptr<RealNode>> nodes;
  for (std::size_t device = 0; device < run.loaded.config.job.devices.max; ++device) {
    RealNode::Outside outside;
    outside.source = source_for(run, device, clock);
    if (device == 1) outside.source = std::make_unique<LateSource>(std::move(outside.source));
    if (run.copying_device) outside.device = std::make_unique<CopyingDevice>();
    outside.log = log.open();
    outside.connect = connect_of(device);
    outside.decisions = decisions_for(device, out.rounds);
    nodes.push_back(std::make_unique<RealNode>(config_of_device(run.loaded, device),
                                               runtime::RunOptions{.stop_after = run.stop_after},
                                               parts.catalog(), clock, std::move(outside)));
  }
  const std::uint64_t rows = std::min<std::size_t>(run.records, run.loaded.config.buffer.rows);
  for (auto& node : nodes) node->read(rows);
  for (auto& node : nodes) node->train();
  for (auto& node : nodes)
    if (!node->wait(std::chrono::seconds(60)))
      std::fprintf(stderr, "a device did not end within 60 s: %s\n", node->node().status().phrase().c_str());
  for (auto& node : nodes) take(out, node->node());
  return out;
}

}  // namespace rivulet::testing
