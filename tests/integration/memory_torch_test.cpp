// Compares device.memory with the use of a real device: LibTorch's models, and a whole process.
#include <doctest/doctest.h>
#include <malloc.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/status/http/http_server.h"
#include "tests/support/device_group.h"
#include "tests/support/effort.h"
#include "tests/support/model_fixture.h"
#include "tests/support/places.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

double kib_of(const std::string& file, const std::string& field) {
  std::ifstream in(file);
  std::string word;
  double value = 0;
  while (in >> word)
    if (word == field && in >> value) return value * 1024;
  return 0;
}

/// Increase of resident memory above its present value while `work` runs.
template <class Work>
double peak_of(const Work& work) {
  malloc_trim(0);                                 // memory kept from earlier cases must not hide this one
  std::ofstream("/proc/self/clear_refs") << "5";  // resets the peak
  const double before = kib_of("/proc/self/status", "VmRSS:");
  work();
  return kib_of("/proc/self/status", "VmHWM:") - before;
}

/// Value in bytes of rivulet_memory_...; 0 if missing.
double metric(const std::string& page, const std::string& name) {
  std::istringstream lines(page);
  double sum = 0;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(name)) sum += std::stod(line.substr(line.rfind(' ') + 1));
  return sum;
}

}  // namespace

TEST_CASE("Memory: a batch on LibTorch takes no more than its model says") {
  constexpr std::size_t rows = 512;
  for (const auto& [model, scalar] :
       {std::pair{"lenet5", Scalar::f32}, std::pair{"cnn", Scalar::f32}, std::pair{"mlp", Scalar::f32},
        std::pair{"lenet5", Scalar::f64}, std::pair{"cnn", Scalar::f64}}) {
    CAPTURE(model);
    auto config = config_of(model, scalar);
    if (config.name == "mlp") {
      config.input = {500};
      set_hidden(config, {2000, 3000});
    }
    const auto device = devices::make_host_device();
    const auto trainer = make_trainer(config, *device);
    const auto state = make_state(*trainer, *device, 1);
    const auto memory = make_contribution(trainer->layout(), *device);
    const auto out = view_of(*memory, trainer->layout());
    const Rows all(config, rows, 2);
    REQUIRE(trainer->compute_gradients(state, all.view(0, 2), out));  // pages of the library itself
    const double taken = peak_of([&] { REQUIRE(trainer->compute_gradients(state, all.all(), out)); });
    const auto needs = model_entry(model).needs(config);
    const double planned = (needs.per_row * rows + static_cast<double>(trainer->layout().parameters)) *
                           static_cast<double>(bytes_of(scalar));
    CAPTURE(taken);
    CAPTURE(planned);
    CHECK(static_cast<double>(trainer->layout().parameters) >= needs.parameters);
    CHECK(taken <= planned);
    const std::string type = scalar == Scalar::f32 ? "" : "_float64";
    report_figure(("memory." + config.name + type + ".batch_taken_of_planned").c_str(), taken / planned, "");
  }
}

namespace {

struct Measured {
  double peak = 0;  ///< resident, of the whole process
  double planned = 0;
  double cap = 0;
  std::string said;
};

/// One LeNet-5 device on generated rows, for a few dozen rounds with a checkpoint in each.
Measured measured(const std::vector<std::string>& settings) {
  const TempDir folder;
  const int port = free_port();
  std::vector<std::string> arguments{"run",
                                     "--config",
                                     source_path("examples/mnist/device.toml"),
                                     "--devices",
                                     "1",
                                     "--data-dir",
                                     folder.path().string(),
                                     "--http",
                                     "127.0.0.1:" + std::to_string(port)};
  for (const auto& set : std::vector<std::string>{
           "source.type=file", "source.path=" + source_path("examples/mnist/data"), "source.repeat=true",
           "batch.policy=fixed", "checkpoint.every.rounds=1", "model.name=lenet5"})
    arguments.insert(arguments.end(), {"--set", set});
  for (const auto& set : settings) arguments.insert(arguments.end(), {"--set", set});
  const auto device = start_rivulet(arguments);
  const auto page = [&](const std::string& path) {
    const auto got = runtime::http_get("127.0.0.1", port, path);
    return got ? got.value() : std::string();
  };
  INFO(device->errors());
  REQUIRE(wait_until(
      [&] { return metric(page("/metrics"), "rivulet_checkpoints_total{result=\"ok\"}") >= 20; }, 120s));
  Measured found;
  found.planned = metric(page("/metrics"), "rivulet_memory_planned_bytes{");
  found.cap = metric(page("/metrics"), "rivulet_memory_cap_bytes");
  found.peak = static_cast<double>(device->stats()->peak_rss_bytes);
  found.said = device->errors();
  return found;
}

}  // namespace

TEST_CASE("Memory: a whole device stays within its plan, which is logged and measured") {
  const auto small = measured({"batch.rows=2", "batch.max=2", "buffer.rows=64"});
  const auto large = measured({"batch.rows=512", "batch.max=512", "buffer.rows=40000",
                               "evaluate.held_out.path=" + source_path("examples/mnist/data"),
                               "evaluate.held_out.every=200ms"});
  CHECK(large.cap == 1024.0 * 1024 * 1024);
  CHECK(contains(large.said, "memory planned"));
  CAPTURE(small.peak);
  CAPTURE(small.planned);
  CAPTURE(large.peak);
  CAPTURE(large.planned);
  CHECK(large.planned > 200e6);
  // The use of the large one, without the program itself.
  CHECK(large.peak - small.peak + small.planned <= large.planned);
  CHECK(large.peak - small.peak >= 0.3 * large.planned);
  report_figure("memory.device_taken_of_planned", (large.peak - small.peak) / large.planned, "");
  report_figure("memory.program_itself_mb", (small.peak - small.planned) / 1e6, "MB");
}

TEST_CASE("Memory: a device that does not fit is refused before it asks anybody for anything") {
  const TempDir folder;
  const auto config = source_path("examples/mnist/device.toml");
  const auto with = [&](std::vector<std::string> arguments, const std::string& memory) {
    arguments.insert(arguments.end(), {"--config", config, "--set", "device.memory=" + memory, "--data-dir",
                                       (folder.path() / "data").string()});
    return run_rivulet(arguments, 60s);
  };
  for (const auto& command : {std::vector<std::string>{"run", "--brokers", "127.0.0.1:1", "--http", "off"},
                              std::vector<std::string>{"validate"}}) {
    const auto refused = with(command, "48 MiB");
    INFO(refused.errors);
    CHECK(refused.status.code == 78);
    CHECK(contains(refused.errors, "'device.memory' is 48.0 MiB, but this configuration needs"));
    CHECK(contains(refused.errors, "batch.max"));
  }
  CHECK(!std::filesystem::exists(folder.path() / "data" / "checkpoints"));
  const auto fits = with({"validate"}, "1 GiB");
  CHECK(fits.status.code == 0);
  CHECK(contains(fits.output, "device.memory"));
  CHECK(contains(fits.output, "of device.memory = 1.0 GiB"));
  const auto doctor = with({"doctor", "--http", "off"}, "48 MiB");
  CHECK(contains(doctor.output, "fail  device.memory"));
  CHECK(contains(with({"doctor", "--http", "off"}, "1 GiB").output, "of device.memory = 1.0 GiB"));
}
