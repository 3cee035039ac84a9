// A group rolls back to a good checkpoint: each device has a disk, and one may have lost its files.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <sstream>
#include <utility>

#include "runtime/decisions/decision_log.h"
#include "runtime/node/node_config.h"
#include "runtime/wiring/sim_runner.h"
#include "stream/open.h"
#include "sync/policy/divergence.h"
#include "sync/transport/memory_transport.h"
#include "tests/support/group_support.h"
#include "tests/support/parts/parts.h"
#include "tests/support/real_node.h"
#include "tests/support/replay/replay_streams.h"
#include "tests/support/replay/state_replay.h"
#include "tests/support/sim_disk.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"
#include "tests/support/wrapped_source.h"
#include "tests/support/wrapped_trainer.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace rivulet::runtime;
using sync::policy::Divergence;
using sync::policy::Retreat;

namespace {

constexpr const char* folder = "/checkpoints";

/// Marks some rows. A repeated read and a replay mark the same ones.
struct MarkedRows final : WrappedSource {
  static constexpr std::int64_t first = 6000, last = 8400;
  static constexpr float mark = 0.015625F;
  using WrappedSource::WrappedSource;
  Result<std::span<const Record>> poll(std::size_t most, Duration wait) override {
    const auto polled = inner->poll(most, wait);
    if (!polled) return polled.error();
    records_.assign(polled.value().begin(), polled.value().end());
    values_.clear();
    for (Record& record : records_) {
      if (record.offset < first || record.offset >= last) continue;
      auto& value = values_.emplace_back(record.value.begin(), record.value.end());
      std::memcpy(value.data() + value.size() - sizeof mark, &mark, sizeof mark);
      record.value = value;
    }
    return std::span<const Record>(records_);
  }
  std::vector<Record> records_;
  std::deque<std::vector<std::byte>> values_;
};

/// Any model has a bad loss on these.
struct BadOnMarked final : WrappedTrainer {
  using WrappedTrainer::WrappedTrainer;
  Result<devices::StepReport> compute_gradients(const devices::ModelState& state, const BatchView& batch,
                                                GradientView out) override {
    auto report = inner->compute_gradients(state, batch, out);
    const bool bad = batch.rows > 0 && batch.features.back() == MarkedRows::mark;
    if (report && bad) report.value().loss_sum *= 1000;
    return report;
  }
};

Result<std::unique_ptr<devices::Trainer>> make_bad_on_marked(const devices::ModelConfig& config,
                                                             devices::Device& device) {
  for (const auto* entry : devices::builtin_models()) {
    if (entry->name != "linear") continue;
    auto linear = entry->make(config, device);
    if (!linear) return linear;
    return std::unique_ptr<devices::Trainer>(std::make_unique<BadOnMarked>(std::move(linear).value()));
  }
  return Error{ErrorCode::invalid_config, "no linear model"};
}

const devices::ModelEntry linear_bad_on_marked{"linear", "linear, and bad on marked rows",
                                               make_bad_on_marked};

/// Keeps log lines.
struct KeptLog final : Logger {
  std::string said;
  void write(Level, std::string_view message, const Fields& fields) override {
    said.append(message);
    for (const auto& [key, value] : fields) said.append(" ").append(key).append("=").append(value);
    said += '\n';
  }
};

struct Device {
  VirtualClock reading, training, saving;
  std::vector<Wake*> wakes;
  StopRequest stop{0};
  SimPower power;
  SimDisk disk{power};
  KeptLog log;
  std::unique_ptr<Node> node;
};

/// Devices with checkpoints, each on its own disk. The first records its decisions.
class SavingGroup {
 public:
  explicit SavingGroup(const LoadedConfig& loaded) : loaded_(loaded) {
    catalog_.replace(linear_bad_on_marked);
    for (std::size_t i = 0; i < loaded.config.job.devices.max; ++i) {
      devices_.push_back(std::make_unique<Device>());
      start(i);
    }
  }
  Device& device(std::size_t i) { return *devices_[i]; }
  [[nodiscard]] Stamp good() const { return Divergence::good(devices_[0]->node->state().controllers); }
  [[nodiscard]] std::uint32_t tries() const {
    return Divergence::tries(devices_[0]->node->state().controllers);
  }
  [[nodiscard]] std::string log() const { return (place_.path() / "decisions.jsonl").string(); }

  void start(std::size_t i) {
    Device& own = *devices_[i];
    const LoadedConfig job = config_of_device(loaded_, i);
    auto synthetic = synthetic_config(job.config);
    synthetic.rows_per_second = [](TimePoint) { return 1000.0; };
    for (VirtualClock* clock : {&own.reading, &own.training, &own.saving}) clock->advance_to(runner_.now());
    own.wakes = {&runner_.make_wake(), &runner_.make_wake(), &runner_.make_wake()};
    auto decisions = make_null_decision_log();
    if (i == 0) decisions = open_decision_log(log(), 1 << 30).value();
    auto node = Node::build(job, {}, catalog_.catalog(),
                            {.ingest_clock = own.reading,
                             .worker_clock = own.training,
                             .ingest_wake = *own.wakes[0],
                             .worker_wake = *own.wakes[1],
                             .source = std::make_unique<MarkedRows>(
                                 stream::open_synthetic_source(synthetic, own.reading).value()),
                             .device = devices::make_host_device(),
                             .log = control_.open(),
                             .connect = network_.connect_for(own.training),
                             .metrics = metrics_,
                             .logger = own.log,
                             .decisions = std::move(decisions),
                             .stop = own.stop,
                             .nonce_seed = 100 * ++lives_ + i,
                             .checkpoint_wake = own.wakes[2],
                             .checkpoints = folder,
                             .files = own.disk});
    REQUIRE_MESSAGE(node, node.error().message);
    own.node = std::move(node).value();
    runner_.add(own.node->ingest(), own.reading, *own.wakes[0]);
    runner_.add(own.node->worker(), own.training, *own.wakes[1]);
    runner_.add(*own.node->checkpoints(), own.saving, *own.wakes[2]);
  }
  void kill(std::size_t i) {
    network_.kill(config_of_device(loaded_, i).config.device.id);
    for (Wake* wake : device(i).wakes) runner_.remove(*wake);
    device(i).node.reset();
  }
  void run_until(const std::function<bool()>& done, double seconds = 60) {
    bool is_done = false;
    const double begun = to_seconds(runner_.now().time_since_epoch());
    runner_.run_until([&] {
      is_done = done();
      return is_done || to_seconds(runner_.now().time_since_epoch()) > begun + seconds;
    });
    REQUIRE(is_done);
  }
  /// A replay of the first device's log has the same result.
  void check_replay() {
    Config config = loaded_.config;
    config.source.type = "synthetic";  // source of simulated devices
    auto streams = ReplayStreams::create(config, "").value();
    const StopRequest stop{0};
    const auto replayed = replay_state(
        loaded_, catalog_.catalog(), {log(), ""},
        [&](const PartitionId& id, std::int64_t offset) {
          auto opened = streams->open(id, offset);
          if (opened) opened.value().source = std::make_unique<MarkedRows>(std::move(opened.value().source));
          return opened;
        },
        [](const StateReplayReport&) {}, stop);
    REQUIRE_MESSAGE(replayed, replayed.error().message);
    const auto& difference = replayed.value().difference;
    CHECK_MESSAGE(!difference, difference->place, ": ", difference->what.field, ": ",
                  difference->what.recorded, " / ", difference->what.computed);
  }

 private:
  const LoadedConfig loaded_;
  TempDir place_;
  PartsCatalog catalog_;
  SimRunner runner_;
  NullMetrics metrics_;
  sync::membership::MemoryLog control_;
  sync::MemoryNetwork network_{{std::chrono::milliseconds(1), 12.5e6}, {}};
  std::uint64_t lives_ = 0;
  std::vector<std::unique_ptr<Device>> devices_;
};

LoadedConfig saving_job(std::uint32_t devices) {
  auto job = linear_job(devices);
  auto& c = job.config;
  c.batch.policy = "fixed";
  c.batch.rows = 50;
  c.checkpoint.every_rounds = 5;
  c.sync.on_peer_loss = "reform";
  return job;
}

/// The views of a log, each with its rounds.
struct RecordedView {
  ViewRecord view;
  std::vector<RoundRecord> rounds;
};
std::vector<RecordedView> views_in(const std::string& log) {
  std::vector<RecordedView> views;
  std::istringstream lines(read_file(log));
  for (std::string line; std::getline(lines, line);) {
    const auto record = parse_decision_line(line);
    REQUIRE(record);
    if (const auto* view = std::get_if<ViewRecord>(&record.value()))
      views.push_back({*view, {}});
    else
      views.back().rounds.push_back(std::get<RoundRecord>(record.value()));
  }
  return views;
}

}  // namespace

TEST_CASE(
    "Back: who lacks the good checkpoint keeps nothing of its own steps, whether rows are read again or left "
    "out") {
  auto job = saving_job(3);
  job.config.sync.policy = "periodic";
  job.config.settings.set("sync.local_steps", std::int64_t{4});
  SavingGroup group(job);
  group.run_until([&] { return group.good().step > 0; });
  std::uint32_t tries = 0;
  group.run_until([&] {
    group.device(1).disk.wipe();
    const std::uint32_t before = std::exchange(tries, group.tries());
    return before == 2 && tries == 0;
  });
  const auto views = views_in(group.log());
  REQUIRE(views.size() >= 3);
  std::size_t retreats = 0;
  for (std::size_t i = 1; i < views.size(); ++i) {
    const RoundRecord& left = views[i - 1].rounds.back();
    REQUIRE(left.plan.now.retreat == Retreat::roll_back);
    ++retreats;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      CAPTURE(rank);
      CHECK(views[i].rounds.front().table.facts[rank].step > left.table.facts[rank].step);
      CHECK(views[i].rounds.front().table.sections[rank].private_state.empty());
    }
  }
  CHECK(retreats >= 2);
  const std::string lacked = "this device lacks the good checkpoint, and requests it from the others";
  CHECK(contains(group.device(1).log.said, lacked));
  CHECK_FALSE(contains(group.device(0).log.said, lacked));
  CHECK(contains(group.device(1).log.said, "rows_since=read again"));
  CHECK(contains(group.device(1).log.said, "rows_since=skipped"));
  group.check_replay();
}

TEST_CASE("Back: the page marks when, and its scores are of the model that the group has gone back to") {
  SavingGroup group(saving_job(2));
  NodeStatus& status = group.device(1).node->status();
  status.keep_history();
  group.run_until([&] { return status.own_scores().rows >= 1000; });
  group.run_until([&] { return status.view.load() > 1; });
  CHECK(status.own_scores().rows == 0);
  status.look_back(TimePoint{});
  const auto marks = status.history()->marks();
  const auto goes_back = [&](const History::Mark& mark) {
    return mark.phrase == "the model has diverged: the group rolls back to " + text_of(group.good());
  };
  CHECK(std::ranges::count_if(marks, goes_back) == 1);
}

TEST_CASE("Back: a group that dies on the way back begins with its newest files, and so does a replay") {
  SavingGroup group(saving_job(2));
  const auto goes_back = [](const Device& device) {
    return contains(device.log.said, "the group rolls back");
  };
  group.run_until([&] { return goes_back(group.device(0)) && goes_back(group.device(1)); });
  const Stamp good = group.good();
  for (const std::size_t i : {0U, 1U}) group.kill(i);
  for (const std::size_t i : {0U, 1U}) group.start(i);
  const std::uint64_t rows = group.device(0).node->state().rows;
  group.run_until([&] { return group.device(0).node->state().rows > rows + 1000; });
  const auto views = views_in(group.log());
  REQUIRE(views.size() == 2);
  CHECK(views[0].rounds.back().plan.now.retreat == Retreat::roll_back);
  CHECK(views[1].view.from.step > good.step);
  CHECK(views[1].view.from.step < views[0].rounds.back().table.facts[0].step);
  group.check_replay();
}

TEST_CASE("Back: a group whose own steps are all refused, for they go too far, ends soon") {
  auto job = linear_job(4);
  auto& c = job.config;
  c.train.clip_usual = false;
  c.train.lr = 1e7;
  c.sync.policy = "periodic";
  c.settings.set("sync.local_steps", std::int64_t{4});
  SimulateOptions options;
  options.rates = {{{0, 400}}};
  options.profile = {std::chrono::milliseconds(2), 8000};
  options.link = {std::chrono::milliseconds(1), 12.5e6};
  auto group = build_group(job, options);
  run_to_end(*group, [] { return false; }, 60);  // three times 64 steps of 0.1 s, plus forming
  for (std::size_t i = 0; i < group->size(); ++i) {
    const auto& error = group->node(i).worker().ending().error;
    REQUIRE(error);
    CHECK(error->code == ErrorCode::invalid_config);
    CHECK(contains(error->message, "the model has diverged again"));
  }
}
