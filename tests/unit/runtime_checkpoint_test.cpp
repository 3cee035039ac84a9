#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>

#include "core/clock.h"
#include "runtime/checkpoint/checkpointer.h"
#include "runtime/checkpoint/saved_offsets.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;
namespace fs = std::filesystem;

namespace {

const StateOwner owner{"m", "pumps", {"readings"}};

devices::ModelLayout layout() {
  return {Scalar::f32, 4, 1, {{"weight", {4}, 0, 4}}, {}};
}

/// Weights that encode the step of their state.
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
  std::vector<std::string> problems;

  std::string write(const Stamp& stamp) {
    const auto state = state_at(stamp, *device);
    const auto written = files.write(owner, state, digest_of(state, *device).value());
    REQUIRE(written);
    CHECK(written.value().hash.size() == 64);
    return (folder.path() / "checkpoints" / (text_of(stamp) + ".ckpt")).string();
  }
  std::optional<DecodedState> newest() {
    const auto shape = layout();
    problems.clear();
    return files.newest({owner, shape, *device}, problems);
  }
  std::vector<Stamp> stamps() {
    std::vector<Stamp> all;
    for (const auto& entry : files.list(problems)) all.push_back(entry.stamp);
    return all;
  }
};

}  // namespace

TEST_CASE("Checkpoints: the hash that is told of a file is the one that its reader finds") {
  Bench b;
  const auto state = state_at({1, 5}, *b.device);
  const auto written = b.files.write(owner, state, digest_of(state, *b.device).value());
  REQUIRE(written);
  const auto loaded = b.newest();
  REQUIRE(loaded);
  CHECK(written.value().hash == hex_of(loaded->hash));
}

TEST_CASE("Checkpoints: the newest is the one with the best stamp, and it is the state that was written") {
  Bench b;
  CHECK_FALSE(b.newest());
  CHECK(b.problems.empty());
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
    CHECK(std::any_of(b.problems.begin(), b.problems.end(),
                      [&](const auto& text) { return contains(text, path); }));
  CHECK(b.problems.size() == 4);
  CHECK(b.stamps() ==
        std::vector<Stamp>{{1, 2}, {1, 1}});  // detecting a wrong weight requires reading the whole file
}

TEST_CASE(
    "Checkpoints: numbers that are not what the digest says are not loaded, however whole the file is") {
  Bench b;
  b.write({1, 1});
  const auto state = state_at({1, 2}, *b.device);
  REQUIRE(b.files.write(owner, state, Digest{1, 2}));
  const auto newest = b.newest();
  REQUIRE(newest);
  CHECK(newest->state.stamp == Stamp{1, 1});
  REQUIRE(b.problems.size() == 1);
  CHECK(contains(b.problems[0], "1.2.ckpt: its values do not match its digest"));
}

TEST_CASE("Checkpoints: of another version of the program they are no misfit only when they are damaged") {
  Bench b;
  const auto path = b.write({1, 1});
  flip(path, 8);  // in the version, after the magic
  const auto shape = layout();
  CHECK_FALSE(b.newest());
  CHECK_FALSE(b.files.misfit({owner, shape, *b.device}));
  auto image = read_whole_file(path, fs::file_size(path)).value();
  const auto hash = sha256_of(std::span(image).first(image.size() - sizeof(Sha256)));
  std::copy(hash.begin(), hash.end(), image.end() - sizeof(Sha256));
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(image.data()), static_cast<std::streamsize>(image.size()));
  CHECK_FALSE(b.newest());
  const auto misfit = b.files.misfit({owner, shape, *b.device});
  REQUIRE(misfit);
  CHECK(contains(*misfit, "this program reads version"));
}

TEST_CASE("Checkpoints: what the group has committed stays, and so do the newest") {
  Bench b;
  for (std::uint64_t step = 1; step <= 6; ++step) b.write({1, step});
  b.files.prune(3, {1, 2}, owner.job);  // no state newer than 2 is on enough disks yet
  CHECK(b.stamps() == std::vector<Stamp>{{1, 6}, {1, 5}, {1, 4}, {1, 3}, {1, 2}});
  b.files.prune(3, {1, 6}, owner.job);
  CHECK(b.stamps() == std::vector<Stamp>{{1, 6}, {1, 5}, {1, 4}});
  b.files.prune(3, {}, owner.job);  // no committed state is here: nothing is deleted
  CHECK(b.stamps().size() == 3);
}

TEST_CASE("Checkpoints: what the group would go back to stays, however old it is") {
  Bench b;
  for (std::uint64_t step = 1; step <= 9; ++step) b.write({1, step});
  const std::array wanted{Stamp{1, 2}, Stamp{1, 4}};
  b.files.prune(2, {1, 9}, owner.job, wanted);
  CHECK(b.stamps() == std::vector<Stamp>{{1, 9}, {1, 8}, {1, 4}, {1, 2}});
  b.files.prune(2, {}, owner.job, {});
  b.files.prune(2, {1, 9}, owner.job, std::span(wanted).first(1));
  CHECK(b.stamps() == std::vector<Stamp>{{1, 9}, {1, 8}, {1, 2}});
}

TEST_CASE("Checkpoints: of another job are not removed, wherever they come from, and take nobody's place") {
  Bench b;
  for (std::uint64_t step = 1; step <= 3; ++step) b.write({1, step});
  const auto state = state_at({9, 9}, *b.device);
  REQUIRE(b.files.write({owner.model, "another", owner.topics}, state, digest_of(state, *b.device).value()));
  std::filesystem::copy_file(b.folder.path() / "checkpoints" / "1.3.ckpt", b.folder.path() / "whole.ckpt");
  const auto found = b.files.foreign(owner.job);
  REQUIRE(found);
  CHECK(found->job == "another");
  CHECK(found->stamp == Stamp{9, 9});
  b.files.prune(1, {1, 3}, owner.job);
  CHECK(b.stamps() == std::vector<Stamp>{{9, 9}, {1, 3}});
  b.files.prune(1, {9, 9}, "another");
  CHECK(b.stamps() == std::vector<Stamp>{{9, 9}, {1, 3}});
  for (std::uint64_t step = 1; step <= 60; ++step) b.files.prune(1, {}, "a third");
  CHECK(b.stamps().size() == 2);
}

TEST_CASE("Checkpoints: as long as the group commits nothing, the disk does not fill") {
  Bench b;
  b.write({1, 1});
  b.write({1, 2});
  for (std::uint64_t step = 3; step <= 60; ++step) {
    b.write({1, step});
    b.files.prune(3, {1, 2}, owner.job);
  }
  const auto left = b.stamps();
  CHECK(left.size() == CheckpointFolder::uncommitted_max + 1);
  CHECK(left.front() == Stamp{1, 60});
  CHECK(left.back() == Stamp{1, 2});  // the committed state
  b.files.prune(3, {}, owner.job);
  CHECK(b.stamps().size() == CheckpointFolder::uncommitted_max);
}

TEST_CASE(
    "Saved offsets: they go onto the board with the commit that covers them, not with one beside them") {
  const std::vector<PartitionId> own{{0, 0}};
  CommittableOffsets board;
  std::vector<NextOffset> news;
  const auto device = devices::make_host_device();
  SavedOffsets offsets;
  offsets.saved(state_at({3, 450}, *device), own);
  offsets.saved(state_at({3, 500}, *device), own);
  CHECK(offsets.committed({3, 460}, board));
  board.take_news(news);
  CHECK(news == std::vector<NextOffset>{{{0, 0}, 450}});
  CHECK_FALSE(offsets.committed({3, 499}, board));
  // The group resumes from 3.450 as 4.450; this device's 3.500 is not part of its history.
  offsets.forget();
  CHECK_FALSE(offsets.committed({4, 460}, board));
  board.take_news(news);
  CHECK(news.empty());
  for (std::uint64_t step = 461; step < 600; ++step) offsets.saved(state_at({4, step}, *device), own);
  CHECK_FALSE(offsets.committed({4, 599 - SavedOffsets::states_max}, board));  // bounded: made room
  CHECK(offsets.committed({4, 600 - SavedOffsets::states_max}, board));
}

namespace {

struct NoWake final : Wake {
  void notify() noexcept override {}
};

/// A disk that fails on request with a given errno.
struct FailingDisk final : FileOperations {
  enum class Call : std::uint8_t { none, write, sync_file, rename, sync_folder };
  Call fails = Call::none;
  int with = 0;
  mutable int syncs = 0;  ///< of the current file: the first is the file's, the second the folder's

  ssize_t write(int fd, std::span<const std::byte> bytes) const override {
    syncs = 0;
    if (fails != Call::write) return FileOperations::write(fd, bytes);
    const auto half = FileOperations::write(fd, bytes.first(bytes.size() / 2));
    if (bytes.size() > 1) return half;  // the rest does not fit
    errno = with;
    return -1;
  }
  int sync(int fd) const override {
    const bool of_file = ++syncs == 1;
    return fail(of_file ? Call::sync_file : Call::sync_folder) ? -1 : FileOperations::sync(fd);
  }
  int rename(const std::string& from, const std::string& to) const override {
    return fail(Call::rename) ? -1 : FileOperations::rename(from, to);
  }

 private:
  [[nodiscard]] bool fail(Call call) const {
    if (fails == call) errno = with;
    return fails == call;
  }
};

struct CountedMetrics final : MetricsSink {
  struct Count final : Counter {
    double value = 0;
    void add(double amount) noexcept override { value += amount; }
  };
  std::map<std::string, Count> results;  ///< of checkpoints_total
  NullMetrics others;
  Counter& counter(std::string_view name, Labels labels) override {
    return name == "checkpoints_total" ? results[std::string(labels.begin()->second)]
                                       : others.counter(name, labels);
  }
  Gauge& gauge(std::string_view name, Labels labels) override { return others.gauge(name, labels); }
  Histogram& histogram(std::string_view name, Labels labels) override {
    return others.histogram(name, labels);
  }
  void remove(std::string_view, Labels) override {}
};

struct KeptLog final : Logger {
  std::vector<std::string> lines;
  void write(Level level, std::string_view message, const Fields& fields) override {
    lines.emplace_back(level == Level::error ? "error: " : "");
    lines.back() += message;
    for (const auto& [key, value] : fields) lines.back().append(" ").append(key).append("=").append(value);
  }
};

struct Writer : Bench {
  explicit Writer(const std::string& path = "") {
    checkpointer = std::make_unique<Checkpointer>(
        CheckpointFolder(path.empty() ? (folder.path() / "checkpoints").string() : path, disk), 3, owner,
        devices::ModelState::create(layout(), *device).value(),
        Checkpointer::Parts{clock, *device, metrics, log, wake, wake});
  }
  /// Offers a state of this step and has it written; returns true if it is acknowledged.
  bool save(std::uint64_t step) {
    CHECK(checkpointer->offer(state_at({1, step}, *device)));
    static_cast<void>(checkpointer->step());
    const auto saved = checkpointer->take_saved();
    if (saved) CHECK(saved->stamp == Stamp{1, step});
    return saved.has_value();
  }
  [[nodiscard]] std::size_t temporaries() const {
    std::size_t n = 0;
    for (const auto& file : fs::directory_iterator(folder.path() / "checkpoints"))
      n += file.path().extension() == ".tmp" ? 1 : 0;
    return n;
  }
  FailingDisk disk;
  VirtualClock clock;
  CountedMetrics metrics;
  KeptLog log;
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

TEST_CASE("Checkpointer: a file that the group goes back to is fetched beside the training, once") {
  Writer w;
  REQUIRE(w.save(500));
  REQUIRE(w.save(501));
  CHECK_FALSE(w.checkpointer->fetching());
  w.checkpointer->fetch({1, 500});
  CHECK(w.checkpointer->fetching());
  CHECK_FALSE(w.checkpointer->take_fetched());
  static_cast<void>(w.checkpointer->step());
  const auto file = w.checkpointer->take_fetched();
  REQUIRE(file);
  REQUIRE(*file);
  const auto shape = layout();
  const auto state = decode_state(file->value(), {owner, shape, *w.device});
  REQUIRE(state);
  CHECK(state.value().state.stamp == Stamp{1, 500});
  CHECK_FALSE(w.checkpointer->take_fetched());
  CHECK_FALSE(w.checkpointer->fetching());
  w.checkpointer->fetch({1, 7});
  static_cast<void>(w.checkpointer->step());
  const auto missing = w.checkpointer->take_fetched();
  REQUIRE(missing);
  CHECK_FALSE(*missing);
}

TEST_CASE("Checkpointer: what the state itself calls good, or has on trial, outlives newer files") {
  Writer w;
  const auto save = [&](std::uint64_t step, double good, double trial) {
    AgreedState state = state_at({1, step}, *w.device);
    state.controllers = {{"divergence", {0, 0, 1, good, 0, 1, trial, 0}}};
    CHECK(w.checkpointer->offer(state));
    static_cast<void>(w.checkpointer->step());
    CHECK(w.checkpointer->take_saved());
    w.checkpointer->committed({1, step});
  };
  save(1, 0, 1);
  save(2, 0, 1);
  for (std::uint64_t step = 3; step <= 9; ++step) save(step, 1, 4);
  CHECK(w.stamps() == std::vector<Stamp>{{1, 9}, {1, 8}, {1, 7}, {1, 4}, {1, 1}});
}

TEST_CASE("Checkpointer: what the device keeps for itself lies beside the state that it was offered with") {
  Writer w;
  const std::vector<std::byte> residual(4 * sizeof(float), std::byte{42});
  for (const std::uint64_t step : {500U, 501U}) {
    CHECK(w.checkpointer->offer(
        state_at({1, step}, *w.device),
        step == 500 ? runtime::PrivateView{.residual = residual} : runtime::PrivateView{}));
    static_cast<void>(w.checkpointer->step());
    CHECK(w.checkpointer->take_saved());
  }
  const auto part = w.files.private_part({1, 500}, layout(), w.problems);
  REQUIRE(part);
  CHECK(part->residual == residual);
  CHECK_FALSE(w.files.private_part({1, 501}, layout(), w.problems));
  CHECK(w.problems.empty());
}

TEST_CASE("Checkpointer: a state that cannot be written is never acknowledged, and the next one is tried") {
  using Call = FailingDisk::Call;
  for (const auto& [call, code] :
       {std::pair{Call::write, ENOSPC}, std::pair{Call::sync_file, EDQUOT}, std::pair{Call::rename, ENOSPC},
        std::pair{Call::write, EIO}, std::pair{Call::sync_file, EIO}, std::pair{Call::rename, EIO}}) {
    CAPTURE(static_cast<int>(call));
    CAPTURE(code);
    Writer w;
    CHECK(w.save(1));
    w.disk.fails = call;
    w.disk.with = code;
    CHECK_FALSE(w.save(2));
    CHECK(w.temporaries() == 0);
    CHECK(w.stamps() == std::vector<Stamp>{{1, 1}});
    CHECK(w.newest()->state.stamp == Stamp{1, 1});
    CHECK(w.metrics.results["failed"].value == 1);
    REQUIRE(w.log.lines.size() == 1);
    CHECK(contains(w.log.lines[0], "error: no checkpoint was written"));
    CHECK(contains(w.log.lines[0], (w.folder.path() / "checkpoints" / "1.2.ckpt").string()));
    CHECK(contains(w.log.lines[0], std::generic_category().message(code)));
    w.disk.fails = Call::none;
    CHECK(w.save(3));
    CHECK(w.newest()->state.stamp == Stamp{1, 3});
    CHECK(w.metrics.results["ok"].value == 2);
  }
}

TEST_CASE("Checkpointer: a folder that cannot be synced acknowledges nothing") {
  Writer w;
  CHECK(w.save(1));
  w.disk.fails = FailingDisk::Call::sync_folder;
  w.disk.with = EIO;
  CHECK_FALSE(w.save(2));
  CHECK(w.metrics.results["failed"].value == 1);
  CHECK(w.newest());  // minimum 1; 2 may be visible until the power fails
}

TEST_CASE("Checkpointer: a full disk is tried for ever, a disk that fails twice in a row no more") {
  Writer w;
  w.disk.fails = FailingDisk::Call::sync_file;
  w.disk.with = ENOSPC;
  for (std::uint64_t step = 1; step <= 5; ++step) CHECK_FALSE(w.save(step));
  w.disk.with = EIO;
  CHECK_FALSE(w.save(6));
  w.disk.with = ENOSPC;  // between two failures that are not consecutive
  CHECK_FALSE(w.save(7));
  w.disk.with = EIO;
  CHECK_FALSE(w.save(8));
  w.disk.fails = FailingDisk::Call::none;
  CHECK(w.save(9));
  w.disk.fails = FailingDisk::Call::sync_file;
  CHECK_FALSE(w.save(10));
  CHECK_FALSE(w.save(11));
  CHECK(contains(w.log.lines.back(), "no more checkpoints"));
  w.disk.fails = FailingDisk::Call::none;  // too late: it has failed twice
  CHECK_FALSE(w.save(12));
  CHECK(w.metrics.results["failed"].value == 11);
  CHECK(w.metrics.results["ok"].value == 1);
  CHECK(w.newest()->state.stamp == Stamp{1, 9});
}

TEST_CASE("Checkpointer: a folder that cannot be made is said, and is used as soon as it can be") {
  const TempDir folder;
  const auto blocked = folder.write("checkpoints", "a file in the place of the folder").string();
  Writer w(blocked);
  for (std::uint64_t step = 1; step <= 3; ++step) CHECK_FALSE(w.save(step));
  CHECK(contains(w.log.lines.back(), blocked));
  fs::remove(blocked);
  CHECK(w.save(4));
}

TEST_CASE("Checkpoints: pruning by hand keeps the newest that can be used, and never deletes the only one") {
  Bench b;
  const auto prune = [&](std::size_t keep) {
    const auto shape = layout();
    b.problems.clear();
    return b.files.prune_checked(keep, {owner, shape, *b.device}, b.problems);
  };
  for (std::uint64_t step = 1; step <= 6; ++step) b.write({1, step});
  flip(b.write({1, 7}), 150);
  flip(b.write({2, 1}), 20);
  const auto first = prune(2);
  CHECK(first.kept.size() == 2);
  CHECK(first.removed.size() == 4);
  CHECK(b.problems.size() == 2);  // the damaged ones are kept: their value is for the user to judge
  CHECK(b.stamps() == std::vector<Stamp>{{1, 7}, {1, 6}, {1, 5}});
  CHECK(b.newest()->state.stamp == Stamp{1, 6});
  CHECK(prune(0).kept.size() == 1);
  CHECK(b.newest()->state.stamp == Stamp{1, 6});
  CHECK(prune(1).removed.empty());

  const StateOwner other{"of another model", "pumps", {"readings"}};
  const auto shape = layout();
  const auto none = b.files.prune_checked(1, {other, shape, *b.device}, b.problems);
  CHECK(none.kept.empty());
  CHECK(none.removed.empty());
  CHECK(b.newest()->state.stamp == Stamp{1, 6});
}
