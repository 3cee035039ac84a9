// Measures the cost of a simulated device: time per device and round in groups of growing size, without
// gradients; the memory per device; and with real gradients, relative to the bare training loop over the same
// batches. A device-step is one device in one round: rows ingested, batch, facts, plan, payload, update,
// accounting.
//   build/release/bench_simulation_scale [DEVICES,DEVICES,...] [REAL_DEVICES]
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "core/check.h"
#include "core/clock.h"
#include "core/rng.h"
#include "devices/trainer.h"
#include "runtime/node/catalog.h"
#include "runtime/node/node.h"
#include "runtime/wiring/simulation.h"
#include "tests/support/places.h"
#include "tests/support/sgd.h"

using namespace rivulet;

namespace {

/// A scenario with minimal buffers, in which every device has a row in every round.
runtime::LoadedConfig job_of(std::uint32_t devices, const std::string& model,
                             std::vector<std::int64_t> shape) {
  runtime::LoadedConfig loaded;
  auto& c = loaded.config;
  c.job.name = "scale";
  c.job.devices = devices;
  c.source.topics = {"rows"};
  c.decode.format = "raw";
  for (const char* key : {"decode.raw.label", "decode.raw.features"}) c.settings.set(key, std::string("f32"));
  c.decode.shape = std::move(shape);
  c.decode.scale = {1};
  c.decode.shift = {0};
  c.model.name = model;
  c.buffer.rows = 64;
  c.batch.max = 32;
  return loaded;
}

double resident_bytes() {
  long pages = 0;
  long resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

struct Measured {
  double steps_per_s = 0;
  double bytes_per_device = 0;
  std::uint64_t rounds = 0;
};

/// Runs the group until it is warmed up, then for `seconds` of CPU time, because the machine may be shared.
Measured run_group(const runtime::LoadedConfig& job, const runtime::SimulateOptions& options,
                   double seconds) {
  const double before = resident_bytes();
  auto built = runtime::SimulatedGroup::build(job, options, {});
  RIVULET_CHECK(bool(built), "the group could not be built");
  auto& group = *built.value();
  const auto rounds = [&] { return group.node(0).state().stamp.step; };
  group.run_until([&] { return rounds() >= 5; });
  const std::uint64_t first = rounds();
  const double began = process_cpu_seconds();
  std::uint64_t seen = first;  // reading the clock costs as much as a step
  group.run_until([&] {
    if (rounds() == seen) return false;
    seen = rounds();
    return process_cpu_seconds() - began >= seconds;
  });
  const double took = process_cpu_seconds() - began;
  Measured out;
  out.rounds = rounds() - first;
  out.steps_per_s = static_cast<double>(out.rounds * job.config.job.devices.max) / took;
  out.bytes_per_device = (resident_bytes() - before) / job.config.job.devices.max;
  return out;
}

/// Gradients of all devices' batches and one update: the minimum work of a simulation.
double bare_steps_per_s(const runtime::LoadedConfig& job, std::size_t rows, std::uint32_t devices,
                        double seconds) {
  const auto host = devices::make_host_device();
  const RowShape shape{job.config.decode.shape, 1};
  auto trainer = runtime::build_trainer(job.config, runtime::builtin_catalog(), shape, *host).value();
  auto state = devices::ModelState::create(trainer->layout(), *host).value();
  RIVULET_CHECK(trainer->initialize(state, 1), "the model was not initialized");
  std::vector<float> features(rows * shape.columns());
  std::vector<float> targets(rows);
  Rng rng = Rng::derive(1, "bench");
  for (auto& f : features) f = static_cast<float>(rng.uniform());
  for (auto& t : targets) t = static_cast<float>(rng.below(10));
  std::vector<float> gradient(trainer->layout().contribution());
  const GradientView out{reinterpret_cast<std::byte*>(gradient.data()), gradient.size()};
  const double began = process_cpu_seconds();
  std::uint64_t rounds = 0;
  for (; process_cpu_seconds() - began < seconds; ++rounds) {
    for (std::uint32_t i = 0; i < devices; ++i)
      RIVULET_CHECK(trainer->compute_gradients(state, {features, targets, rows, {}}, out), "no gradient");
    devices::sgd_step(state, out);
  }
  return static_cast<double>(rounds * devices) / (process_cpu_seconds() - began);
}

void report_timing(const std::string& list) {
  std::istringstream in(list);
  for (std::string item; std::getline(in, item, ',');) {
    const auto devices = static_cast<std::uint32_t>(std::atoi(item.c_str()));
    runtime::SimulateOptions options;
    options.rates = {{{0, 10.0}}};
    options.timing_only = true;
    const auto got = run_group(job_of(devices, "linear", {8}), options, 3);
    fmt::print(
        "timing only  {:5} devices  {:9.0f} device-steps/s  {:8.2f} us each  {:8.1f} KB per device  ({} "
        "rounds)\n",
        devices, got.steps_per_s, 1e6 / got.steps_per_s, got.bytes_per_device / 1e3, got.rounds);
  }
}

/// Simulates MNIST in a user's setup.
void report_real(std::uint32_t devices, std::size_t rows) {
  auto job = job_of(devices, "lenet5", {1, 28, 28});
  for (const char* key : {"decode.raw.label", "decode.raw.features"})
    job.config.settings.set(key, std::string("u8"));
  job.config.decode.scale = {0.0127288};
  job.config.decode.shift = {-0.4242};
  runtime::SimulateOptions options;
  options.data = rivulet::testing::source_path("examples/mnist/data");
  options.rates = {{{0, static_cast<double>(rows) * 10.0}}};
  std::vector<double> share;
  double simulated = 0;
  for (int i = 0; i < 5; ++i) {
    const double bare = bare_steps_per_s(job, rows, devices, 2);
    simulated = run_group(job, options, 2).steps_per_s;
    share.push_back(simulated / bare);
  }
  fmt::print("lenet5, {} rows per step  {} devices  {:.0f} device-steps/s  vs. the bare loop: {}\n", rows,
             devices, simulated, bench::spread(share, "x"));
}

}  // namespace

int main(int argc, char** argv) {
  devices::prepare_process(1);
  report_timing(argc > 1 ? argv[1] : "16,64,256");
  const int real = argc > 2 ? std::atoi(argv[2]) : 16;
  if (real > 0)
    for (const std::size_t rows : {4, 16}) report_real(static_cast<std::uint32_t>(real), rows);
  return 0;
}
