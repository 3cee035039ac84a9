// A group of two with a fixed script for every row and millisecond. Compares all measurements, explanations
// and pages with values computed by hand.
//
// Both devices have batches of 8 rows with target 4, and a model of one value p, which each step moves half
// the way to 4. Their rounds, with p before the step:
//
//   round  mode        p         rows a  b   step  remarks
//   0      idle        0              0  0         no plan had requested rows yet
//   1, 2   defer       0              8  8
//   3      gradients   0              8  8   1
//   4      gradients   2              8  8   2
//   5      gradients   3              8  8   3     a waited for its rows until 1 s
//   6      gradients   3.5            8  0   4     one target of b is 9: its batch is not finite
//   7      gradients   3.75           8  8   5
//   8      gradients   3.875          8  8   6
//   9      gradients   3.9375         8  8   7     payloads left with the facts
//   10     defer       3.96875        8  8         payloads left with the facts, unused
//   11     gradients   3.96875        8  8   8
//   12     gradients   3.984375       8  8   9     the last
//
// a computes for 2 ms + 8 rows / 8000, b for 5 ms + 8 rows / 4000; a message takes 1 ms.
#include <algorithm>
#include <sstream>

#include "tests/conformance/metrics_typed.h"
#include "tests/support/group_support.h"
#include "tests/support/measured_group.h"
#include "tests/support/parts/parts.h"
#include "tests/support/places.h"
#include "tests/support/temp_dir.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

std::vector<MeasuredGroup::Row> rows_of(std::size_t good, double late_from, double late_until) {
  std::vector<MeasuredGroup::Row> rows;
  for (std::size_t i = 0; i < good; ++i) {
    const bool late = static_cast<double>(i) >= late_from;
    rows.push_back({.value = "4:00ff", .due_s = late ? late_until : 0, .age_s = i % 8 == 0 ? 4000.0 : 500.0});
  }
  return rows;
}

/// Runs both to their end and one second longer.
std::unique_ptr<MeasuredGroup> play() {
  static const PartsCatalog parts;
  auto loaded = linear_job(2);
  auto& c = loaded.config;
  c.batch.policy = "each_mode";
  c.model.name = "fragile";
  c.model.classes = 10;
  c.decode.format = "hex";
  c.decode.shape = {2};
  c.train.lr = 0.25;
  c.settings.set("train.optimizer.momentum", 0.0);
  c.buffer.rows = 128;
  c.checkpoint.every_rounds = 4;
  std::vector<MeasuredGroup::Device> devices(2);
  // 72 rows are trained, 5 left over; two records cannot be decoded.
  devices[0] = {"a", rows_of(77, 16, 1.0), {std::chrono::milliseconds(2), 8000}};
  devices[0].rows.insert(devices[0].rows.begin() + 3, {.value = "4:00"});
  devices[0].rows.insert(devices[0].rows.begin() + 20, {.value = "4:zz00", .due_s = 1.0});
  // 72 rows, one batch of them dropped for its target 9, and 3 left over.
  devices[1] = {"b", rows_of(75, 1e9, 0), {std::chrono::milliseconds(5), 4000}};
  devices[1].rows[29].value = "9:00ff";
  auto group = std::make_unique<MeasuredGroup>(loaded, parts.catalog(), runtime::StopAfter{.rounds = 9},
                                               std::move(devices), std::chrono::milliseconds(1));
  group->append_to_log("nothing that a device wrote");
  group->run(1.0);
  return group;
}

/// FILE of tests/support/metric_sheets with `digest` for DIGEST.
std::string typed_text(const std::string& file, const std::string& digest) {
  std::string text = read_file(source_path("tests/support/metric_sheets/" + file));
  if (const auto at = text.find("DIGEST"); at != std::string::npos) text.replace(at, 6, digest);
  return text;
}

void check_json(const std::string& json, const std::string& file, const std::string& digest) {
  CAPTURE(file);
  for (const std::string& difference : json_differences(json, typed_text(file, digest)))
    FAIL_CHECK(difference);
}

}  // namespace

TEST_CASE("Measured: a group of two, by its metrics") {
  const auto group = play();
  CHECK(group->node(0).state().model.parameters().as<float>()[0] == 3.9921875F);
  for (const std::size_t device : {0UL, 1UL}) {
    CAPTURE(device);
    const MetricSheet sheet = group->sheet(device);
    check_sheet(sheet, read_typed(device == 0 ? "fast" : "slow"));
    const auto& bytes = sheet.find("checkpoint_size_bytes");
    CHECK((bytes != sheet.end() && bytes->second == group->checkpoint_bytes(device)));
  }
}

TEST_CASE("Measured: a group of two, by what its devices say") {
  const auto group = play();
  const std::string digest = group->node(0).status().digest();  // of the state before the last round
  CHECK(digest.size() == 32);
  check_json(group->status_json(0), "fast.status.json", digest);
  check_json(group->status_json(1), "slow.status.json", digest);
  check_json(group->group_json(0), "fast.group.json", digest);
  check_json(group->group_json(1), "slow.group.json", digest);
}

TEST_CASE("Measured: a group of two, by what its page shows") {
  const auto group = play();
  const auto shown = cells_of(group->page(0));
  std::vector<std::string> typed;
  std::istringstream lines(typed_text("fast.page.txt", group->node(0).status().digest()));
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with('#')) typed.push_back(line);
  for (std::size_t i = 0; i < std::max(shown.size(), typed.size()); ++i)
    CHECK((i < shown.size() ? shown[i] : "nothing more") == (i < typed.size() ? typed[i] : "nothing more"));
}
