// A stall of each thread ends the process with 70 and prints the stacks of all threads.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "core/clock.h"
#include "runtime/process/watchdog.h"
#include "runtime/wiring/production.h"
#include "sync/transport/gloo_transport.h"
#include "tests/support/group_support.h"
#include "tests/support/model_fixture.h"
#include "tests/support/process.h"
#include "tests/support/real_node.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"
#include "tests/support/wrapped_source.h"
#include "tests/support/wrapped_trainer.h"

#include <doctest/doctest.h>

using namespace rivulet;
using namespace rivulet::testing;

namespace {

constexpr auto deadline = std::chrono::seconds(1);
constexpr auto for_ever = std::chrono::seconds(60);
constexpr const char* mark = "stalling at ";

/// Prints the time, so that the parent can measure from here, and hangs.
void hang() {
  std::fprintf(stderr, "%s%lld\n", mark,
               static_cast<long long>(RealClock().now().time_since_epoch().count()));
  std::this_thread::sleep_for(for_ever);
}

/// Stalls once, on the n-th call.
struct StallingSource final : WrappedSource {
  explicit StallingSource(std::unique_ptr<stream::RecordSource> s, int n)
      : WrappedSource(std::move(s)), left(n) {}
  Result<std::span<const Record>> poll(std::size_t max, Duration wait) override {
    if (--left == 0) hang();
    return inner->poll(max, wait);
  }
  int left;
};

struct StallingDecisions final : runtime::DecisionLog {
  void write(std::uint64_t, std::uint64_t round, const sync::FactsTable&,
             const sync::policy::RoundPlan&) override {
    if (round == 5) hang();
  }
};

class StallingDecoder final : public stream::Decoder {
 public:
  explicit StallingDecoder(std::unique_ptr<stream::Decoder> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] const RowShape& shape() const noexcept override { return inner_->shape(); }
  void begin(const Record& record) noexcept override { inner_->begin(record); }
  stream::Decoded next(RowSlot out) noexcept override {
    if (++calls_ == 100) hang();
    return inner_->next(out);
  }
  [[nodiscard]] std::string_view detail() const noexcept override { return inner_->detail(); }

 private:
  std::unique_ptr<stream::Decoder> inner_;
  int calls_ = 0;
};
const stream::DecoderEntry stalling_decoder{
    "stalling", "test only",
    [](const stream::DecodeConfig& config) -> Result<std::unique_ptr<stream::Decoder>> {
      for (const auto* entry : stream::builtin_decoders()) {
        if (entry->name != "raw") continue;
        auto inner = entry->make(config);
        if (!inner) return inner.error();
        return std::unique_ptr<stream::Decoder>(std::make_unique<StallingDecoder>(std::move(inner).value()));
      }
      return Error{ErrorCode::invalid_config, "no decoder raw"};
    }};

/// The linear model with a hanging gradient.
const devices::ModelEntry stalling_model{
    "stalling", "test only",
    [](const devices::ModelConfig& config,
       devices::Device& device) -> Result<std::unique_ptr<devices::Trainer>> {
      struct Stalling final : WrappedTrainer {
        using WrappedTrainer::WrappedTrainer;
        Result<devices::StepReport> compute_gradients(const devices::ModelState& s, const BatchView& batch,
                                                      GradientView out) override {
          if (++calls == 5) hang();
          return inner->compute_gradients(s, batch, out);
        }
        int calls = 0;
      };
      auto inner = model_entry("linear").make(config, device);
      if (!inner) return inner.error();
      return std::unique_ptr<devices::Trainer>(std::make_unique<Stalling>(std::move(inner).value()));
    }};

/// The child: one device as `rivulet run` builds it, with a hanging decoder or model.
[[noreturn]] void stall_in_production(const std::string& where) {
  const TempDir folder;
  auto job = linear_job(1);
  job.config.source.type = "synthetic";
  job.config.source.rate = 500;
  job.config.source.claims = {{"lines", 0}};
  job.config.device.data_dir = folder.path().string();
  job.config.http.listen = "off";
  job.config.watchdog.deadline = deadline;
  PartsCatalog parts;
  parts.add(stalling_decoder);
  parts.add(stalling_model);
  if (where == "run-ingest") job.config.decode.format = "stalling";
  if (where == "run-train") job.config.model.name = "stalling";
  runtime::StopRequest stop{0};
  static_cast<void>(runtime::run_device_with(job, {}, parts.catalog(), stop));
  _exit(0);
}

/// The child: two devices over Gloo, the first with a stall in `where`, with the product's watchdog.
[[noreturn]] void stall(const std::string& where) {
  auto job = linear_job(2);
  job.config.batch.policy = "scripted";
  const RealClock clock;
  const PartsCatalog parts;
  sync::membership::MemoryLog log;
  std::atomic<std::int64_t> comm_beat{0};
  std::vector<std::unique_ptr<RealNode>> nodes;
  for (std::size_t d = 0; d < 2; ++d) {
    RealNode::Outside outside;
    outside.source = linear_source(job.config, d, 100'000, clock);
    if (d == 0 && where == "ingest")
      outside.source = std::make_unique<StallingSource>(std::move(outside.source), 3);
    if (d == 0 && where == "train") outside.decisions = std::make_unique<StallingDecisions>();
    sync::GlooConfig gloo;
    gloo.transport.progress_deadline = std::chrono::seconds(30);
    if (d == 0) gloo.comm_beat_ns = &comm_beat;
    int beats = 0;
    if (d == 0 && where == "comm")
      gloo.comm_tick = [beats]() mutable {
        if (++beats == 10) hang();
      };
    outside.log = log.open();
    outside.connect = std::move(sync::make_gloo_connect(gloo, clock)).value();
    nodes.push_back(std::make_unique<RealNode>(config_of_device(job, d), runtime::RunOptions{},
                                               parts.catalog(), clock, std::move(outside)));
  }
  runtime::Watchdog watchdog(deadline);
  watchdog.watch({"ingest", [&] { return nodes[0]->ingest_beat_ns(); }});
  watchdog.watch({"train", [&] { return nodes[0]->train_beat_ns(); }});
  watchdog.watch({"comm", [&] { return comm_beat.load(); }});
  watchdog.start();
  for (auto& node : nodes) node->start();
  std::this_thread::sleep_for(for_ever);
  _exit(0);
}

}  // namespace

TEST_CASE(
    "Stall: ingest, train and comm each end the process with 70 soon after the deadline, with all stacks") {
  if (const char* where = std::getenv("RIVULET_TEST_STALL")) {
    if (std::string(where).starts_with("run-")) stall_in_production(where);
    stall(where);
  }
  for (const std::string where : {"ingest", "train", "comm", "run-ingest", "run-train"}) {
    INFO(where);
    auto child = Process::start({.command = {"/proc/self/exe", "--test-case=Stall*"},
                                 .environment = {{"RIVULET_TEST_STALL", where}}});
    REQUIRE(child);
    const auto status = child.value()->wait(std::chrono::seconds(30));
    const auto ended = RealClock().now().time_since_epoch().count();
    REQUIRE(status);
    CHECK(status->code == 70);
    const std::string said = child.value()->errors();
    INFO(said);
    const auto at = said.find(mark);
    REQUIRE(at != std::string::npos);
    const Duration took(ended - std::stoll(said.substr(at + std::string(mark).size())));
    CHECK(took >= deadline);
    CHECK(took <= testing::deadline_slack * deadline);
    const std::string thread = where.starts_with("run-") ? where.substr(4) : where;
    CHECK(contains(said, "watchdog: thread '" + thread + "' has made no progress"));
    for (const char* other : {"ingest", "train"}) CHECK(contains(said, other));
    CHECK(contains(said, "sleep"));
  }
}
