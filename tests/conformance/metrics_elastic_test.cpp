// A group of three from which one device leaves, and which another joins. Compares the measurements of these
// changes with values computed by hand, and the time without a step with the steps that the test sees.
//
//   second  devices  view
//   0       a b c    1     each stream has a row every 50 ms
//   1       a b      2     c was requested to stop
//   1.5     a b d    3     d has started, and joins at once, since the group lacks its usual number
#include <algorithm>
#include <cmath>

#include "tests/conformance/metrics_typed.h"
#include "tests/support/group_support.h"
#include "tests/support/measured_group.h"
#include "tests/support/parts/parts.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

MeasuredGroup::Device device(const char* id) {
  MeasuredGroup::Device out{id, {}, {std::chrono::milliseconds(2), 8000}};
  for (std::size_t i = 0; i < 80; ++i)
    out.rows.push_back({.value = "4:00ff", .due_s = 0.05 * static_cast<double>(i)});
  return out;
}

runtime::LoadedConfig job_of_two_to_three() {
  auto loaded = linear_job(3);
  auto& c = loaded.config;
  c.job.devices = {2, 3, 3};
  c.sync.on_peer_loss = "reform";
  c.model.name = "fragile";
  c.model.classes = 10;
  c.decode.format = "hex";
  c.decode.shape = {2};
  c.settings.set("train.optimizer.momentum", 0.0);
  c.buffer.rows = 128;
  return loaded;
}

/// Sees the steps of a device once per millisecond.
class StepsSeen {
 public:
  explicit StepsSeen(const runtime::NodeStatus& status) : status_(status) {}
  void look(double second) {
    if (status_.steps == steps_) return;
    if (steps_ > 0 && status_.view != view_) gaps_s_ += second - last_step_s_;
    steps_ = status_.steps;
    view_ = status_.view;
    last_step_s_ = second;
  }
  /// Time between the last step of each view and the first of the next.
  [[nodiscard]] double gaps_s() const noexcept { return gaps_s_; }

 private:
  const runtime::NodeStatus& status_;
  std::uint64_t steps_ = 0;
  std::uint64_t view_ = 0;
  double last_step_s_ = 0;
  double gaps_s_ = 0;
};

/// The series of the sheet that the typed one names.
MetricSheet part_of(MetricSheet sheet, const TypedSheet& typed) {
  const auto names = names_in(typed);
  std::erase_if(sheet, [&](const auto& series) {
    std::string name = series.first.substr(0, series.first.find('{'));
    for (const std::string_view part : {"_sum", "_count"})
      if (name.ends_with(part)) name.resize(name.size() - part.size());
    return !names.contains(name);
  });
  return sheet;
}

}  // namespace

TEST_CASE("Measured: a group that changes its size") {
  static const PartsCatalog parts;
  MeasuredGroup group(job_of_two_to_three(), parts.catalog(), {}, {device("a"), device("b"), device("c")},
                      std::chrono::milliseconds(1));
  StepsSeen seen(group.node(0).status());
  const auto run_to = [&](double second) {
    for (double now = group.seconds(); now < second; now += 0.001) {
      group.run_to(now);
      seen.look(now);
    }
  };
  run_to(1);
  group.stop(2);
  run_to(1.5);
  CHECK(group.node(2).worker().ended());
  group.join(device("d"));
  run_to(3);
  const auto elastic = read_typed("elastic");
  for (const std::size_t member : {0UL, 1UL}) {
    CAPTURE(member);
    check_sheet(part_of(group.sheet(member), elastic), elastic);
    const auto& status = group.node(member).status();
    CHECK(std::abs(status.view_gaps_s - seen.gaps_s()) < 0.004);
    CHECK(status.view_gap_s > 0);
    CHECK(status.view_gap_s < status.view_gaps_s);
    CHECK(status.view_ended().starts_with("devices join the group after round "));
  }
  const auto newcomer = read_typed("newcomer");
  check_sheet(part_of(group.sheet(3), newcomer), newcomer);
}
