// Devices are started, killed and frozen at random, any of them and any number: those that live train
// whenever they are enough, and in the end every row counts exactly once. Real processes on a real Apache
// Kafka.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/effort.h"
#include "tests/support/kill_harness.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

/// Every half to two seconds one is started (0.6) or struck (0.4).
class Chaos {
 public:
  Chaos(KillGroup& group, std::uint64_t seed)
      : group_(group), rng_(Rng::derive(seed, "chaos")), alive_(static_cast<std::size_t>(group.devices())) {}

  void happen() {
    std::this_thread::sleep_for(500ms + 1ms * static_cast<int>(rng_.below(1500)));
    group_.produce(static_cast<int>(20 + rng_.below(60)));
    const auto device = static_cast<int>(rng_.below(alive_.size()));
    const bool lives = alive_[static_cast<std::size_t>(device)];
    if (rng_.below(10) < 6) {
      if (!lives) start(device);
    } else if (lives) {
      rng_.below(4) == 0 ? freeze(device) : kill(device);
    }
  }
  void start_all() {
    for (int i = 0; i < group_.devices(); ++i)
      if (!alive_[static_cast<std::size_t>(i)]) start(i);
  }
  [[nodiscard]] int kills() const { return kills_; }
  [[nodiscard]] int freezes() const { return freezes_; }

 private:
  void start(int device) {
    group_.start(device);
    alive_[static_cast<std::size_t>(device)] = true;
  }
  void kill(int device) {
    group_.kill(device);
    alive_[static_cast<std::size_t>(device)] = false;
    ++kills_;
  }
  void freeze(int device) {
    group_.stop(device);
    std::this_thread::sleep_for(1ms * static_cast<int>(rng_.below(4000)));
    group_.resume(device);
    ++freezes_;
  }

  KillGroup& group_;
  Rng rng_;
  std::vector<bool> alive_;
  int kills_ = 0;
  int freezes_ = 0;
};

}  // namespace

TEST_CASE("Chaos: devices start, die and freeze at random, and every row counts exactly once") {
  const auto seed = seed_or(1);
  CAPTURE(seed);
  KillGroup group({.devices = 6,
                   .rows_per_device = repetitions(3000, 200'000),
                   .bad_every = repetitions(100, 5000),
                   .settings = {"job.devices=2-6"}});
  Chaos chaos(group, seed);
  for (int i = 0; i < repetitions(30, 2000); ++i) chaos.happen();
  chaos.start_all();
  group.produce_all();
  group.require_all_trained(30s);
  const auto history = group.check_exact();
  report_figure("chaos: kills", chaos.kills(), "kills");
  report_figure("chaos: freezes", chaos.freezes(), "freezes");
  report_figure("chaos: rows trained", static_cast<double>(history.rows), "rows");
  CHECK(chaos.kills() > 3);
}
