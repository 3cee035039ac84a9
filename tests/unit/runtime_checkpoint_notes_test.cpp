// Time of each saved state and score of its model; the best one is kept.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "runtime/checkpoint/checkpoint_folder.h"
#include "tests/support/example_state.h"
#include "tests/support/temp_dir.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

const StateOwner owner{"m", "pumps", {"readings"}};

struct Saved {
  TempDir folder;
  std::unique_ptr<devices::Device> device = devices::make_host_device();
  devices::ModelLayout layout = layout_of(4, 1);
  CheckpointFolder files{(folder.path() / "checkpoints").string()};

  void write(const Stamp& stamp, std::optional<Score> score) {
    AgreedState state{devices::ModelState::create(layout, *device).value(), stamp, 10, {}};
    REQUIRE(files.write(owner, state, digest_of(state, *device).value()));
    REQUIRE(files.write_note(stamp, {1'764'236'534'000 + static_cast<std::int64_t>(stamp.step), score}));
  }
  [[nodiscard]] std::vector<Stamp> stamps() const {
    std::vector<Stamp> all;
    std::vector<std::string> problems;
    for (const auto& entry : files.list(problems)) all.push_back(entry.stamp);
    CHECK(problems.empty());
    return all;
  }
};

Score accuracy(double value) {
  return {Measure::accuracy, value};
}

}  // namespace

TEST_CASE("Checkpoint notes: what is written is read; any other line is left out") {
  const CheckpointNotes notes{
      {{1, 5}, {1000, accuracy(0.1)}}, {{2, 7}, {2000, {}}}, {{3, 9}, {3000, Score{Measure::loss, 1.0 / 3}}}};
  const auto back = notes_in(text_of(notes));
  REQUIRE(back.size() == 3);
  CHECK(back.at({1, 5}).score->value == 0.1);
  CHECK(back.at({2, 7}).saved_ms == 2000);
  CHECK_FALSE(back.at({2, 7}).score);
  CHECK(back.at({3, 9}).score->measure == Measure::loss);
  CHECK(back.at({3, 9}).score->value == 1.0 / 3);
  CHECK(text_of(back) == text_of(notes));
  const auto some = notes_in("1.5 x accuracy 1\n1.6 -5\n1.7 10 accuracy nan\n\n1.8 20 beauty 3\nx\n1.9 30\n");
  REQUIRE(some.size() == 3);
  for (const auto& [stamp, note] : some) CHECK_FALSE(note.score);
}

TEST_CASE(
    "Checkpoint notes: the best is of the newest measure, a loss the lower the better, of equals the "
    "newest") {
  CheckpointNotes notes{{{1, 1}, {1, accuracy(0.9)}},
                        {{1, 2}, {2, accuracy(0.95)}},
                        {{1, 3}, {3, accuracy(0.95)}},
                        {{1, 4}, {4, accuracy(0.5)}},
                        {{1, 5}, {5, {}}}};
  CHECK(best_of(notes) == Stamp{1, 3});
  notes[{1, 6}] = {6, Score{Measure::held_out_accuracy, 0.2}};
  CHECK(best_of(notes) == Stamp{1, 6});
  CheckpointNotes losses{{{1, 1}, {1, Score{Measure::loss, 2}}},
                         {{1, 2}, {2, Score{Measure::loss, 0.5}}},
                         {{1, 3}, {3, Score{Measure::loss, 30}}}};
  CHECK(best_of(losses) == Stamp{1, 2});
  CHECK_FALSE(best_of({{{1, 1}, {1, {}}}}));
  CHECK_FALSE(best_of({}));
}

TEST_CASE("Checkpoints: the best is kept beside the newest, until another is better") {
  Saved s;
  s.write({1, 1}, accuracy(0.8));
  s.write({1, 2}, accuracy(0.97));
  for (std::uint64_t step = 3; step <= 8; ++step) {
    s.write({1, step}, accuracy(0.5));
    s.files.prune(2, {1, step}, "pumps");
  }
  CHECK(s.stamps() == std::vector<Stamp>{{1, 8}, {1, 7}, {1, 2}});
  CHECK(s.files.notes().size() == 3);  // notes of deleted files are deleted
  s.write({1, 9}, accuracy(0.98));
  s.write({1, 10}, {});
  s.write({1, 11}, {});
  s.files.prune(2, {1, 11}, "pumps");
  CHECK(s.stamps() == std::vector<Stamp>{{1, 11}, {1, 10}, {1, 9}});
  std::vector<std::string> problems;
  const auto pruned = s.files.prune_checked(1, {owner, s.layout, *s.device}, problems);
  CHECK(pruned.kept.size() == 2);
  CHECK(s.stamps() == std::vector<Stamp>{{1, 11}, {1, 9}});
}

TEST_CASE("Checkpoints: notes that are damaged, or too long, keep nothing and refuse nothing") {
  Saved s;
  for (std::uint64_t step = 1; step <= 4; ++step)
    s.write({1, step}, accuracy(1.0 / static_cast<double>(step)));
  const auto path = s.folder.path() / "checkpoints" / "notes";
  std::ofstream(path) << std::string(1000, '\xff');
  s.files.prune(2, {1, 4}, "pumps");
  CHECK(s.stamps() == std::vector<Stamp>{{1, 4}, {1, 3}});
  std::filesystem::resize_file(path, 1ULL << 40U);
  CHECK(s.files.notes().empty());
}
