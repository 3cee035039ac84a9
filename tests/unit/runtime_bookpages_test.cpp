// A device's ledger as metrics: series are created at the start, so that no round requests one.
#include "runtime/status/ledger_metrics.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "devices/device.h"
#include "tests/support/counting_metrics.h"
#include "tests/support/example_state.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;
using namespace std::chrono_literals;

TEST_CASE(
    "Ledger metrics: its series are there from the beginning, without offsets that nobody has agreed on") {
  const std::vector<PartitionId> own{{0, 3}, {0, 1}};
  CountingMetrics metrics;
  NodeStatus status;
  LedgerMetrics pages(metrics, status, own, {"t"});
  const int at_first = metrics.asked();
  CHECK(std::isnan(metrics["ledger_offset/t/1/next"]));
  CHECK(std::isnan(metrics["ledger_offset/t/3/start"]));
  CHECK(metrics["ledger_rows/t/3/trained"] == 0);

  const auto device = devices::make_host_device();
  AgreedState state = example_state(layout_of(3, 0), *device);
  state.partitions.clear();
  PartitionProgress& progress = state.partitions[{0, 3}];
  progress.start.offset = 5;
  progress.next.offset = 9;
  progress.trained = 4;
  pages.publish(state, TimePoint(1s));
  CHECK(metrics["ledger_offset/t/3/start"] == 5);
  CHECK(metrics["ledger_offset/t/3/next"] == 9);
  CHECK(metrics["ledger_rows/t/3/trained"] == 4);
  CHECK(std::isnan(metrics["ledger_offset/t/1/next"]));
  CHECK(status.ledger().size() == 1);
  state.partitions[{0, 1}].next.offset = 2;
  pages.publish(state, TimePoint(1s + 100ms));  // too soon
  CHECK(std::isnan(metrics["ledger_offset/t/1/next"]));
  pages.publish(state, TimePoint(2s));
  CHECK(metrics["ledger_offset/t/1/next"] == 2);
  CHECK(metrics.asked() == at_first);
}
