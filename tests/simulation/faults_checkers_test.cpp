// Each checker finds its kind of error, and nothing in a correct state.
#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "devices/device.h"
#include "tests/support/sim_checkers.h"
#include "tests/support/sim_disk.h"
#include "tests/support/sim_ledger.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

/// A state of one partition in which all rows below `next` were trained once.
struct Trained {
  std::unique_ptr<devices::Device> device = devices::make_host_device();
  RowTable rows;
  runtime::AgreedState state{model(*device), {1, 1}, 0, {}};

  explicit Trained(RowCursor next) {
    auto& progress = state.partitions[{0, 0}];
    progress.next = next;
    for (std::int64_t offset = 0; offset < next.offset; ++offset) count(progress, offset);
    const RowSums sums = rows.below(0, next);
    numbers()[0] = sums.rows;
    numbers()[1] = sums.numbers;
  }
  [[nodiscard]] std::span<double> numbers() const { return state.model.parameters().as<double>(); }
  runtime::PartitionProgress& progress() { return state.partitions.begin()->second; }

 private:
  static devices::ModelState model(devices::Device& on) {
    devices::ModelLayout layout;
    layout.scalar = Scalar::f64;
    layout.parameters = 3;
    layout.parameter_slots = {{"sums", {3}, 0, 3}};
    return devices::ModelState::create(layout, on).value();
  }
  static void count(runtime::PartitionProgress& progress, std::int64_t offset) {
    const RowCursor from{offset, 0};
    const RowCursor to{offset + 1, 0};
    const std::uint32_t rows = rows_in_record(0, offset);
    if (kind_of_record(0, offset) == SimRecord::rows) {
      progress.trained += rows;
      progress.shared += rows - 1;
    } else if (kind_of_record(0, offset) == SimRecord::hole) {
      ++progress.holes;
      progress.runs.push_back({{0, 0}, from, to, 1, fate_hole});
    } else {
      ++progress.dropped[0];
      progress.runs.push_back({{0, 0}, from, to, 1, 0});
    }
  }
};

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

TEST_CASE("Checkers: C1 finds books that do not add up, and those that nothing explains") {
  Trained good({200, 0});
  CHECK(check_ledger(good.state).empty());
  Trained missing({200, 0});
  --missing.progress().trained;
  CHECK(check_ledger(missing.state).starts_with("C1"));
  Trained unexplained({200, 0});
  REQUIRE(unexplained.progress().holes > 0);
  unexplained.progress().runs.pop_back();
  CHECK(check_ledger(unexplained.state).starts_with("C1"));
}

TEST_CASE("Checkers: C2 finds a row that was trained twice, not at all, or in place of another") {
  Trained good({200, 0});
  CHECK(check_rows(good.state, good.rows).empty());
  Trained twice({200, 0});
  twice.numbers()[0] += 1;
  CHECK(check_rows(twice.state, twice.rows).starts_with("C2"));
  Trained another({200, 0});
  another.numbers()[1] += 1;
  CHECK(check_rows(another.state, another.rows).starts_with("C2"));
  Trained left_out({200, 0});
  left_out.progress().next = {201, 0};
  while (rows_in_record(0, left_out.progress().next.offset - 1) == 0) ++left_out.progress().next.offset;
  CHECK(check_rows(left_out.state, left_out.rows).starts_with("C2"));
}

TEST_CASE("Checkers: C3 finds two digests or two pasts behind one stamp") {
  StateHistory history;
  CHECK(history.add({}, {StateHistory::none, 0, "a"}).empty());
  CHECK(history.add({1, 1}, {0, 1, "b"}).empty());
  CHECK(history.add({1, 1}, {0, 1, "b"}).empty());
  CHECK(history.add({1, 1}, {0, 1, "c"}).starts_with("C3"));
  CHECK(history.add({1, 2}, {1, 2, "d"}).empty());
  CHECK(history.add({1, 2}, {0, 2, "d"}).starts_with("C3"));
}

TEST_CASE("Checkers: C4 tells a chain from a fork") {
  StateHistory history;
  CHECK(history.add({}, {StateHistory::none, 0, "a"}).empty());
  CHECK(history.add({1, 1}, {0, 1, "b"}).empty());
  CHECK(history.add({2, 1}, {0, 1, "c"}).empty());
  CHECK(history.add({2, 2}, {history.find({2, 1}), 2, "d"}).empty());
  const int fork = history.find({1, 1});
  const int last = history.find({2, 2});
  CHECK(history.extends(last, history.find({2, 1})));
  CHECK(history.extends(last, history.find({})));
  CHECK(history.extends(last, StateHistory::none));
  CHECK_FALSE(history.extends(last, fork));
  CHECK_FALSE(history.extends(history.find({2, 1}), last));
  history.add_name({3, 2}, last);  // adopted by a later view: the same state
  CHECK(history.find({3, 2}) == last);
}

TEST_CASE("Checkers: C5 finds a wait that is too long") {
  CHECK(check_wait("a view", std::chrono::seconds(60), std::chrono::seconds(60)).empty());
  CHECK(check_wait("a view", std::chrono::seconds(61), std::chrono::seconds(60)).starts_with("C5"));
}

TEST_CASE("Checkers: C6 finds a descriptor, a thread and memory that stay") {
  const ProcessUse use = use_of_this_process();
  CHECK(use.descriptors >= 3);
  CHECK(use.threads >= 1);
  CHECK(use.resident_bytes > 0);
  CHECK(check_use(use, use, 0).empty());
  const auto more = [&](std::size_t descriptors, std::size_t threads, std::size_t bytes) {
    return ProcessUse{use.descriptors + descriptors, use.threads + threads, use.resident_bytes + bytes};
  };
  CHECK(check_use(use, more(1, 0, 0), 0).starts_with("C6"));
  CHECK(check_use(use, more(0, 1, 0), 0).starts_with("C6"));
  CHECK(check_use(use, more(0, 0, 11), 10).starts_with("C6"));
  CHECK(check_use(use, more(0, 0, 10), 10).empty());
}

TEST_CASE("Checkers: C6 finds a file that a simulated process left open") {
  SimPower power;
  SimDisk disk(power);
  REQUIRE(runtime::write_whole_file("/folder/file", std::vector<std::byte>(10), disk));
  CHECK(check_descriptors("a device", disk.descriptors()).empty());
  disk.open("/folder/file", 0);
  CHECK(check_descriptors("a device", disk.descriptors()).starts_with("C6"));
  disk.close_all();
  CHECK(check_descriptors("a device", disk.descriptors()).empty());
}

TEST_CASE("Checkers: C7 finds a row's bytes in what everybody can read") {
  CHECK(check_private(bytes_of("a record that says nothing of rows"), "the log").empty());
  auto bytes = bytes_of("a record with a row in it: ");
  bytes.resize(bytes.size() + sizeof sim_row_label);
  std::memcpy(bytes.data() + bytes.size() - sizeof sim_row_label, &sim_row_label, sizeof sim_row_label);
  CHECK(check_private(bytes, "the log").starts_with("C7"));
}

TEST_CASE("Checkers: C8 finds two folds of one prefix that differ") {
  FoldTable folds;
  CHECK(folds.add(10, "x").empty());
  CHECK(folds.add(11, "y").empty());
  CHECK(folds.add(10, "x").empty());
  CHECK(folds.add(10, "y").starts_with("C8"));
  CHECK(folds.compared() == 2);
}

TEST_CASE("Checkers: C9 finds a loss that faults have made worse") {
  CHECK(check_loss(1.1, 1.0, 1.2).empty());
  CHECK(check_loss(1.3, 1.0, 1.2).starts_with("C9"));
  CHECK(check_loss(std::numeric_limits<double>::quiet_NaN(), 1.0, 1.2).starts_with("C9"));
}

TEST_CASE("Checkers: C9 finds a step that was made twice, with other rows, or without what moved before") {
  constexpr double same = 1 + 1e-9;
  const std::vector<double> rows = {1, 9'000, 30'000, 65'000};
  const SimLine once = learned({}, rows);
  const double loss = loss_of(learned(once, rows));
  CHECK(check_loss(loss, loss, same).empty());
  CHECK(check_loss(loss_of(learned(learned(once, rows), rows)), loss, same).starts_with("C9"));
  CHECK(check_loss(loss_of(learned(once, std::span(rows).first(3))), loss, same).starts_with("C9"));
  CHECK(check_loss(loss_of(learned({once.height, once.slope, 0, 0}, rows)), loss, same).starts_with("C9"));
}

TEST_CASE("Checkers: the line that a model learns is found, and its best loss is known") {
  SimLine line;
  std::vector<double> rows;
  for (int number = 1; number <= 65'536; number += 512) rows.push_back(number);
  for (int step = 0; step < 2'000; ++step) line = learned(line, rows);
  CHECK(line.height == doctest::Approx(0.5).epsilon(0.05));
  CHECK(line.slope == doctest::Approx(-2).epsilon(0.05));
  CHECK(loss_of(line) == doctest::Approx(4.0 / 64).epsilon(0.05));  // of the numbers -3/8 ... 3/8 around it
}

TEST_CASE("Checkers: C2 finds rows that are called deleted and are there") {
  Trained state({200, 0});
  SimStreams streams{.kept_from = {0}};
  Finding finding;
  const RowBooks good = books_after({}, state.state, streams, finding);
  CHECK(finding.empty());
  CHECK(good.missing.empty());
  state.progress().runs.push_back({{0, 0}, {50, 0}, {60, 0}, 10, fate_hole});
  books_after({}, state.state, streams, finding);
  CHECK(finding.starts_with("C2"));
  streams.kept_from = {60};
  finding.clear();
  const RowBooks gone = books_after({}, state.state, streams, finding);
  CHECK(finding.empty());
  CHECK_FALSE(check_rows(state.state, state.rows, gone.missing).empty());  // but its model includes them
  RowSums rows = state.rows.below(0, {60, 0});
  rows.rows -= state.rows.below(0, {50, 0}).rows;
  CHECK(gone.missing.at(0).rows == rows.rows);
}
