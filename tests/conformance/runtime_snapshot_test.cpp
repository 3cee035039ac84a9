// Snapshots for the evaluator of held-out rows, on real threads.
#include <doctest/doctest.h>

#include "sync/membership/membership.h"
#include "sync/transport/memory_transport.h"
#include "tests/support/group_support.h"
#include "tests/support/real_node.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

TEST_CASE("Snapshot: asked for after the last row, the model is handed out in a round without rows, once") {
  constexpr std::uint64_t rows = 100;
  auto job = linear_job(1);
  job.config.batch.max_wait = 20ms;
  job.config.batch.tick = 10ms;
  const RealClock clock;
  sync::membership::MemoryLog log;
  sync::MemoryNetwork network;
  RealNode::Outside outside;
  outside.source = linear_source(job.config, 0, rows, clock);
  outside.log = log.open();
  outside.connect = network.connect_for(clock);
  outside.snapshots = true;
  RealNode real(config_of_device(job, 0), {}, runtime::builtin_catalog(), clock, std::move(outside));
  real.start();
  auto& status = real.node().status();
  auto& desk = real.node().snapshots();
  const auto rounds_pass = [&] {
    const auto target = status.rounds.load() + 3;
    return wait_until([&] { return status.rounds.load() >= target; }, 30s);
  };
  REQUIRE(wait_until([&] { return status.rows_trained.load() == rows; }, 30s));
  REQUIRE(rounds_pass());
  const auto steps = status.steps.load();
  REQUIRE(steps > 0);
  desk.request();
  CHECK(wait_until([&] { return desk.ready(); }, 30s));
  desk.request();  // the same model is not evaluated twice
  REQUIRE(rounds_pass());
  CHECK_FALSE(desk.ready());
  CHECK(status.steps.load() == steps);
  real.leave();
  CHECK(real.wait(30s));
}
