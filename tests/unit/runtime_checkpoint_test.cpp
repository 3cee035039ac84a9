#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/clock.h"
#include "runtime/checkpointer.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;
namespace fs = std::filesystem;

namespace {

const std::string model = "m";

devices::ModelLayout layout() {
  return {Scalar::f32, 4, 1, {{"weight", {4}, 0, 4}}, {}};
}

/// Weights that tell the step they belong to.
AgreedState state_at(const Stamp& stamp, devices::Device& device) {
  AgreedState state{devices::ModelState::create(layout(), device).value(), stamp, 10 * stamp.step, {}};
  for (float& w : state.model.parameters().as<float>()) w = static_cast<float>(stamp.step);
  state.partitions[{0, 0}] = {{0, 0}, {static_cast<std::int64_t>(stamp.step), 0}, stamp.step};
  return state;
}

struct Bench {
  TempDir folder;
  std::unique_ptr<devices::Device> device = devices::make_host_device();
  CheckpointFolder files{(folder.path() / "checkpoints").string()};
  std::vector<std::string> complaints;

  std::string write(const Stamp& stamp) {
    const auto state = state_at(stamp, *device);
    const auto written = files.write(model, state, digest_of(state, *device).value());
    REQUIRE(written);
    CHECK(written.value().hash.size() == 64);
    return (folder.path() / "checkpoints" / (text_of(stamp) + ".ckpt")).string();
  }
  std::optional<DecodedState> newest() {
    const auto shape = layout();
    complaints.clear();
    return files.newest({model, shape, *device}, complaints);
  }
  std::vector<Stamp> stamps() {
    std::vector<Stamp> all;
    for (const auto& entry : files.list(complaints)) all.push_back(entry.stamp);
    return all;
  }
};

void flip(const std::string& path, std::streamoff at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const char byte = static_cast<char>(file.get() ^ 4);
  file.seekp(at);
  file.put(byte);
}

}  // namespace

TEST_CASE("Checkpoints: the newest is the one with the best stamp, and it is the state that was written") {
  Bench b;
  CHECK_FALSE(b.newest());
  CHECK(b.complaints.empty());
  b.write({1, 900});
  b.write({2, 100});
  b.write({1, 1000});
  CHECK(b.stamps() == std::vector<Stamp>{{2, 100}, {1, 1000}, {1, 900}});
  const auto newest = b.newest();
  REQUIRE(newest);
  CHECK(newest->state.stamp == Stamp{2, 100});
  CHECK(newest->state.rows == 1000);
  CHECK(newest->state.model.parameters().as<float>()[3] == 100);
  CHECK(newest->state.partitions.at({0, 0}).next == RowCursor{100, 0});
}

TEST_CASE("Checkpoints: a damaged, torn or foreign file is passed over, and named") {
  Bench b;
  b.write({1, 1});
  const auto second = b.write({1, 2});
  const auto third = b.write({1, 3});
  const auto fourth = b.write({1, 4});
  flip(fourth, 20);                                  // its head
  fs::resize_file(third, fs::file_size(third) / 2);  // torn
  flip(second, 150);                                 // a weight or its checksum
  std::ofstream(b.folder.path() / "checkpoints" / "note.ckpt") << "not a state";
  const auto newest = b.newest();
  REQUIRE(newest);
  CHECK(newest->state.stamp == Stamp{1, 1});
  for (const auto& path : {second, third, fourth})
    CHECK(std::any_of(b.complaints.begin(), b.complaints.end(),
                      [&](const auto& text) { return contains(text, path); }));
  CHECK(b.complaints.size() == 4);
}

TEST_CASE(
    "Checkpoints: numbers that are not what the digest says are not loaded, however whole the file is") {
  Bench b;
  b.write({1, 1});
  const auto state = state_at({1, 2}, *b.device);
  REQUIRE(b.files.write(model, state, Digest{1, 2}));
  const auto newest = b.newest();
  REQUIRE(newest);
  CHECK(newest->state.stamp == Stamp{1, 1});
  REQUIRE(b.complaints.size() == 1);
  CHECK(contains(b.complaints[0], "1.2.ckpt: its numbers are not those that its digest is of"));
}

TEST_CASE("Checkpoints: what the group has committed stays, and so do the newest") {
  Bench b;
  for (std::uint64_t step = 1; step <= 6; ++step) b.write({1, step});
  b.files.prune(3, {1, 2});  // nothing newer than 2 is on enough disks yet
  CHECK(b.stamps() == std::vector<Stamp>{{1, 6}, {1, 5}, {1, 4}, {1, 3}, {1, 2}});
  b.files.prune(3, {1, 6});
  CHECK(b.stamps() == std::vector<Stamp>{{1, 6}, {1, 5}, {1, 4}});
  b.files.prune(3, {});  // nothing is committed that is here: nothing goes
  CHECK(b.stamps().size() == 3);
}

namespace {

struct NoWake final : Wake {
  void notify() noexcept override {}
};

struct Writer : Bench {
  explicit Writer(const std::string& path = "") {
    checkpointer = std::make_unique<Checkpointer>(
        CheckpointFolder(path.empty() ? (folder.path() / "checkpoints").string() : path), 3, model,
        devices::ModelState::create(layout(), *device).value(),
        Checkpointer::Parts{clock, *device, metrics, *log, wake, wake});
  }
  VirtualClock clock;
  NullMetrics metrics;
  std::unique_ptr<Logger> log = make_null_logger();
  NoWake wake;
  std::unique_ptr<Checkpointer> checkpointer;
};

}  // namespace

TEST_CASE("Checkpointer: a state that was offered is on the disk before it is said to be") {
  Writer w;
  static_cast<void>(w.checkpointer->step());
  CHECK_FALSE(w.checkpointer->take_saved());
  const auto state = state_at({1, 500}, *w.device);
  CHECK(w.checkpointer->offer(state));
  CHECK(w.checkpointer->busy());
  CHECK_FALSE(w.checkpointer->offer(state_at({1, 501}, *w.device)));  // one at a time
  CHECK_FALSE(w.checkpointer->take_saved());
  static_cast<void>(w.checkpointer->step());
  const auto saved = w.checkpointer->take_saved();
  REQUIRE(saved);
  CHECK(saved->stamp == Stamp{1, 500});
  CHECK(saved->digest == digest_of(state, *w.device).value().hex());
  CHECK_FALSE(w.checkpointer->take_saved());
  const auto newest = w.newest();
  REQUIRE(newest);
  CHECK(newest->state.stamp == Stamp{1, 500});
  CHECK(newest->digest.hex() == saved->digest);
}

TEST_CASE(
    "Checkpointer: a disk that cannot be written is never acknowledged, and given up after two failures") {
  const TempDir folder;
  const auto blocked = folder.write("checkpoints", "a file in the place of the folder").string();
  Writer w(blocked);
  for (std::uint64_t step = 1; step <= 2; ++step) {
    CHECK(w.checkpointer->offer(state_at({1, step}, *w.device)));
    static_cast<void>(w.checkpointer->step());
    CHECK_FALSE(w.checkpointer->take_saved());
  }
  fs::remove(blocked);  // too late: it has lied twice
  CHECK(w.checkpointer->offer(state_at({1, 3}, *w.device)));
  static_cast<void>(w.checkpointer->step());
  CHECK_FALSE(w.checkpointer->take_saved());
  CHECK_FALSE(fs::exists(blocked));
}
