// Devices are started, killed, frozen, cut off and misled at random, any of them and any number: those that
// live train whenever they are enough, and in the end every row counts exactly once. Real processes on a real
// Apache Kafka, which dies too. The rates of births and deaths are those of PCCL's stress test: every half to
// two seconds one is started (0.6) or struck (0.4), at most ten.
#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "tests/support/effort.h"
#include "tests/support/kill_harness.h"
#include "tests/support/small_disk.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t least = 2;  // `min`, and the quorum of checkpoints
constexpr int with_disk = 3;      // devices that have a disk of their own
const char* const disk_size = "1g";

/// What a device suffers from. A device with any of these need not train.
struct Fate {
  bool alive = false;
  bool hurt = false;
  std::uint64_t applied = 0;  ///< when last looked at
  double commits = 0;
  TimePoint started;
};

/// Observes the group: the longest time without a step, and without a commit, while enough devices are well.
/// Time without a broker does not count, because nobody can read or commit.
class Oracle {
 public:
  void look(KillGroup& group, std::vector<Fate>& fates, TimePoint now) {
    std::size_t well = 0;
    bool stepped = false;
    for (std::size_t i = 0; i < fates.size(); ++i) {
      Fate& fate = fates[i];
      well += fate.alive && !fate.hurt ? 1 : 0;
      const std::uint64_t applied = group.page(static_cast<int>(i)).applied;
      stepped = stepped || applied > fate.applied;
      fate.applied = applied;
      if (fate.alive) seconds_lived += to_seconds(now - last_);
    }
    last_ = now;
    if (stepped || well < least) stepped_ = now;
    if (well < least) committed_ = now;
    step_gap = std::max(step_gap, now - stepped_);
    commit_gap = std::max(commit_gap, now - committed_);
  }
  void commit(TimePoint now) { committed_ = now; }
  void restart(TimePoint now) { last_ = stepped_ = committed_ = now; }
  void begin(TimePoint now) {
    step_gap = commit_gap = {};
    seconds_lived = 0;
    restart(now);
  }

  Duration step_gap{};
  Duration commit_gap{};
  double seconds_lived = 0;  ///< of all devices

 private:
  TimePoint last_;
  TimePoint stepped_;
  TimePoint committed_;
};

/// The largest numbers of the first and the second half of a run, of processes older than ten seconds.
struct Held {
  int files = 0;
  int threads = 0;
  std::int64_t rss = 0;
  void look(const ProcessStats& stats) {
    files = std::max(files, stats.open_files);
    threads = std::max(threads, stats.threads);
    rss = std::max(rss, stats.rss_bytes);
  }
};

struct ChaosOptions {
  int devices = 10;
  int events = 0;
  int broker_every = 60;  ///< events
  int row_ms = 0;         ///< minimum time of a row
};

class Chaos {
 public:
  Chaos(const ChaosOptions& options, std::uint64_t seed, int rows_per_device)
      : options_(options),
        rng_(Rng::derive(seed, "chaos")),
        group_(
            {.devices = options.devices,
             .rows_per_device = rows_per_device,
             .bad_every = 100,
             .batch_max = 1,
             .bits_per_second = 200e6,
             .settings = {"job.devices=" + std::to_string(least) + "-" + std::to_string(options.devices)}}),
        fates_(static_cast<std::size_t>(options.devices)) {
    for (int i = 0; i < with_disk; ++i)
      disks_.push_back(std::make_unique<SmallDisk>(group_.directory(i), disk_size));
    for (int i = 0; i < options.devices; ++i) {
      group_.page(i).warm = 1;
      group_.page(i).compute_ms = static_cast<std::uint32_t>(options.row_ms);
    }
  }

  /// All train without disturbance. Returns the rows per second and device.
  double calm(Duration lasts) {
    mend_all();
    for (int i = 0; i < options_.devices; ++i)
      if (!at(i).alive) start(i);
    group_.require_formed(60s);
    const double rows = static_cast<double>(group_.newest_rows());
    const TimePoint began = clock_.now();
    watch(lasts);
    const double trained = static_cast<double>(group_.newest_rows()) - rows;
    return trained / (options_.devices * to_seconds(clock_.now() - began));
  }

  /// Returns the rows per second and living device.
  double disturb() {
    oracle_.begin(clock_.now());
    const double rows = static_cast<double>(group_.newest_rows());
    for (int event = 1; event <= options_.events; ++event) {
      held_now_ = event > options_.events / 2 ? &second_half_ : &first_half_;
      watch(500ms + 1ms * static_cast<int>(rng_.below(1500)));
      if (event % options_.broker_every == 0) restart_broker();
      happen();
    }
    return (static_cast<double>(group_.newest_rows()) - rows) / oracle_.seconds_lived;
  }

  RunHistory finish() {
    mend_all();
    for (int i = 0; i < options_.devices; ++i) {
      group_.page(i).compute_ms = 0;
      if (!at(i).alive) start(i);
    }
    group_.produce_all();
    group_.require_all_trained(30s);
    return group_.check_exact();
  }

  void report() const {
    for (const auto& [what, count] : counts_) report_figure(("chaos: " + what).c_str(), count, "times");
    report_figure("chaos: longest time without a step", to_seconds(oracle_.step_gap), "s");
    report_figure("chaos: longest time without a commit", to_seconds(oracle_.commit_gap), "s");
    for (const auto& [half, held] : {std::pair{"first half", first_half_}, {"second half", second_half_}}) {
      const std::string name = std::string("chaos: most of a device in the ") + half + ", ";
      report_figure((name + "descriptors").c_str(), held.files, "descriptors");
      report_figure((name + "threads").c_str(), held.threads, "threads");
      report_figure((name + "memory").c_str(), static_cast<double>(held.rss) / (1 << 20), "MiB");
    }
  }
  [[nodiscard]] const Oracle& oracle() const { return oracle_; }
  [[nodiscard]] int count(const std::string& what) const {
    return counts_.contains(what) ? counts_.at(what) : 0;
  }

 private:
  Fate& at(int device) { return fates_[static_cast<std::size_t>(device)]; }

  void happen() {
    const auto device = static_cast<int>(rng_.below(fates_.size()));
    const Fate& fate = at(device);
    if (rng_.below(10) < 6) {
      if (!fate.alive) start(device);
    } else if (fate.alive && !fate.hurt) {
      strike(device);
    }
  }
  void start(int device) {
    group_.start(device);
    at(device) = {.alive = true, .started = clock_.now()};
  }
  void strike(int device) {
    const auto lasts = 1ms * static_cast<int>(rng_.below(4000));
    switch (rng_.below(20)) {
      case 0: return step_clock(device);
      case 1: return fill_disk(static_cast<int>(rng_.below(with_disk)), 2 * lasts);
      case 2: return cut(device, Network::Direction::out, lasts);
      case 3: return cut(device, Network::Direction::in, lasts);
      case 4:
      case 5:
      case 6:
        group_.stop(device);
        return hurt(device, "freezes", lasts, [this, device] { group_.resume(device); });
      default: break;
    }
    group_.kill(device);
    at(device).alive = false;
    ++counts_["kills"];
  }
  void fill_disk(int device, Duration lasts) {
    if (!at(device).alive || at(device).hurt) return;
    SmallDisk& disk = *disks_[static_cast<std::size_t>(device)];
    disk.fill();
    hurt(device, "full disks", lasts, [&disk] { disk.resize(disk_size); });
  }
  void cut(int device, Network::Direction direction, Duration lasts) {
    group_.cut_one_way(device, direction);
    hurt(device, direction == Network::Direction::out ? "links cut outwards" : "links cut inwards", lasts,
         [this, device] { group_.mend_one_way(device); });
  }
  /// By up to ten minutes, forwards or backwards, until the next step.
  void step_clock(int device) {
    group_.page(device).clock_step_ns = 1'000'000'000 * (static_cast<std::int64_t>(rng_.below(1200)) - 600);
    ++counts_["clock steps"];
  }
  void hurt(int device, const char* how, Duration lasts, std::function<void()> mend) {
    at(device).hurt = true;
    ++counts_[how];
    wounds_.push_back({clock_.now() + lasts, device, std::move(mend)});
  }
  void mend_all(std::optional<TimePoint> due = {}) {
    std::erase_if(wounds_, [&](const Wound& wound) {
      if (due && wound.until > *due) return false;
      wound.mend();
      at(wound.device).hurt = false;
      return true;
    });
  }
  void restart_broker() {
    group_.kafka().kill();
    REQUIRE(group_.kafka().restart());
    ++counts_["broker restarts"];
    oracle_.restart(clock_.now());
  }

  /// Looks often enough to see every step, and keeps a backlog in every partition.
  void watch(Duration lasts) {
    const TimePoint end = clock_.now() + lasts;
    while (clock_.now() < end) {
      std::this_thread::sleep_for(20ms);
      const TimePoint now = clock_.now();
      mend_all(now);
      oracle_.look(group_, fates_, now);
      if (now < look_again_) continue;
      look_again_ = now + 1s;
      group_.produce(1 + 1000 / std::max(options_.row_ms, 1));
      for (int i = 0; i < options_.devices; ++i) look_at(i, now);
    }
  }
  void look_at(int device, TimePoint now) {
    Fate& fate = at(device);
    if (!fate.alive || fate.hurt) return;
    const double commits = group_.metric(device, R"(rivulet_kafka_offset_commits_total{result="ok"})");
    if (commits > fate.commits) oracle_.commit(now);
    fate.commits = commits;
    const auto stats = group_.process(device).stats();
    if (held_now_ != nullptr && stats && now - fate.started > 10s) held_now_->look(*stats);
  }

  struct Wound {
    TimePoint until;
    int device;
    std::function<void()> mend;
  };
  const ChaosOptions options_;
  Rng rng_;
  RealClock clock_;
  KillGroup group_;
  std::vector<std::unique_ptr<SmallDisk>> disks_;
  std::vector<Fate> fates_;
  std::vector<Wound> wounds_;
  std::map<std::string, int> counts_;
  Oracle oracle_;
  Held first_half_;
  Held second_half_;
  Held* held_now_ = nullptr;
  TimePoint look_again_;
};

}  // namespace

TEST_CASE("Chaos: devices start, die, freeze and are misled at random, and every row counts exactly once") {
  const auto seed = seed_or(1);
  CAPTURE(seed);
  const bool full = repetitions(0, 1) == 1;
  const int events = static_cast<int>(number_or("CHAOS_SECONDS", full ? 3600 : 40) * 4 / 5);
  const ChaosOptions options{
      .devices = full ? 10 : 6, .events = events, .broker_every = full ? 60 : 12, .row_ms = full ? 400 : 50};
  const int calm_seconds = std::max(3, events / 30);
  // An event takes two seconds at most; what is left of a broker's restart is not trained at full speed.
  Chaos chaos(options, seed, (2 * events + 2 * calm_seconds) * 1000 / options.row_ms);
  const double before = chaos.calm(1s * calm_seconds);
  const double disturbed = chaos.disturb();
  const double after = chaos.calm(1s * calm_seconds);
  const auto history = chaos.finish();
  chaos.report();
  report_figure("chaos: rows per second and living device, of those without",
                2 * disturbed / (before + after), "");
  report_figure("chaos: rows trained", static_cast<double>(history.rows), "rows");
  report_figure("chaos: rows trained again, in rounds that were lost",
                static_cast<double>(history.rows_again), "rows");
  CHECK(chaos.count("kills") > 3);
  if (!full) return;  // the rest depends on the machine
  CHECK(chaos.oracle().step_gap < 10s);
  CHECK(chaos.oracle().commit_gap < 60s);
}
