#pragma once
#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/check.h"
#include "core/clock.h"
#include "runtime/node/memory_plan.h"
#include "runtime/node/node.h"
#include "runtime/process/runner.h"
#include "runtime/wiring/node_dependencies.h"
#include "tests/support/places.h"
#include "tests/support/temp_dir.h"

namespace rivulet::bench {

/// One device in this process with production wiring, ledger, checkpoints and threads, on MNIST rows from
/// memory. `settings` override its configuration. Owner: the thread that created it.
class OneDevice {
 public:
  explicit OneDevice(const std::vector<std::string>& settings)
      : loaded_(configuration(folder_.path().string(), settings)) {
    const auto catalog = runtime::builtin_catalog();
    const auto& config = loaded_.config;
    const auto memory = runtime::plan_memory(config, catalog).value();
    node_ =
        runtime::Node::build(loaded_, {}, catalog,
                             {.ingest_clock = clock_,
                              .worker_clock = clock_,
                              .ingest_wake = ingest_thread_,
                              .worker_wake = train_thread_,
                              .source = runtime::open_source(config, false, memory, clock_, metrics_).value(),
                              .device = devices::make_host_device(),
                              .log = runtime::open_log(config, memory, false, memory_log_).value(),
                              .connect = runtime::open_wires(config, alone_, clock_, beat_ns_).value().mesh,
                              .metrics = metrics_,
                              .logger = *logger_,
                              .decisions = runtime::make_null_decision_log(),
                              .stop = stop_,
                              .poll_wait = std::chrono::milliseconds(5),
                              .checkpoint_wake = &checkpoint_thread_,
                              .checkpoints = (folder_.path() / "checkpoints").string(),
                              .own_log = true})
            .value();
  }

  [[nodiscard]] runtime::Node& node() { return *node_; }
  [[nodiscard]] const Clock& clock() const { return clock_; }

  /// Starts the threads; `train` steps the node's worker. Stops them when `done` returns true. Call once.
  template <class Done>
  void run(runtime::Agent& train, const Done& done) {
    ingest_thread_.start(node_->ingest(), clock_);
    checkpoint_thread_.start(*node_->checkpoints(), clock_);
    train_thread_.start(train, clock_);
    while (!done()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop_ = 1;
    train_thread_.notify();
    train_thread_.join();
    for (auto* thread : {&ingest_thread_, &checkpoint_thread_}) {
      thread->stop();
      thread->join();
    }
  }

 private:
  static runtime::LoadedConfig configuration(const std::string& data_dir,
                                             const std::vector<std::string>& settings) {
    runtime::ConfigInput input;
    input.file = rivulet::testing::source_path("examples/mnist/device.toml");
    input.sets = {"job.devices=1", "device.data_dir=" + data_dir, "source.type=file", "source.repeat=true",
                  "source.path=" + rivulet::testing::source_path("examples/mnist/data")};
    input.sets.insert(input.sets.end(), settings.begin(), settings.end());
    auto loaded = runtime::load_config(input);
    for (const auto& problem : loaded.problems) fmt::print(stderr, "{}\n", problem.text());
    RIVULET_CHECK(loaded.usable(), "invalid configuration of the benchmark");
    return loaded;
  }

  testing::TempDir folder_;
  runtime::LoadedConfig loaded_;
  RealClock clock_;
  NullMetrics metrics_;
  std::unique_ptr<runtime::Logger> logger_ = runtime::make_null_logger();
  sync::membership::MemoryLog memory_log_;
  sync::MemoryNetwork alone_;
  std::atomic<std::int64_t> beat_ns_{0};
  runtime::StopRequest stop_{0};
  runtime::ThreadRunner ingest_thread_;
  runtime::ThreadRunner train_thread_;
  runtime::ThreadRunner checkpoint_thread_;
  std::unique_ptr<runtime::Node> node_;
};

}  // namespace rivulet::bench
