// Runs the error detector on a sequence of predictions, for bench/alarms. Reads one character per row, '1'
// for a wrong prediction, in batches of 16. Prints the number of rows before each alarm.
//   build/release/bench_stream_alarms < ERRORS
#include <cstdio>
#include <iterator>
#include <string>

#include "bench/measure.h"
#include "runtime/train/stream_watch.h"
#include "tests/support/counting_metrics.h"

using namespace rivulet;

namespace {

struct NoLog final : runtime::Logger {
  void write(runtime::Level, std::string_view, const runtime::Fields&) override {}
};

constexpr std::size_t batch_rows = 16;

}  // namespace

int main() {
  std::string errors;
  for (int c = std::getchar(); c != EOF; c = std::getchar())
    if (c == '0' || c == '1') errors += static_cast<char>(c);
  RealClock clock;
  runtime::NodeStatus status;
  testing::CountingMetrics metrics;
  NoLog log;
  runtime::StreamWatch watch({.clock = clock, .status = status, .metrics = metrics, .log = log});
  for (std::size_t at = 0; at + batch_rows <= errors.size(); at += batch_rows) {
    devices::StepReport report{.rows = batch_rows};
    for (std::size_t row = 0; row < batch_rows; ++row) report.correct += errors[at + row] == '0' ? 1 : 0;
    watch.computed(report, {{}, {}, batch_rows, {}}, batch_rows);
    if (watch.report_change()) fmt::print("{}\n", at + batch_rows);
    watch.heed_change();
  }
}
