// Resuming from an older checkpoint: because the newer is damaged, or on request.
#include <doctest/doctest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "runtime/checkpoint/checkpoint_folder.h"
#include "tests/support/example_state.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;
namespace fs = std::filesystem;

namespace {

const StateOwner owner{"m", "pumps", {"a", "b", "c"}};

struct Bench {
  TempDir place;
  std::unique_ptr<devices::Device> device = devices::make_host_device();
  devices::ModelLayout layout = layout_of(5, 2);
  std::string folder = (place.path() / "checkpoints").string();
  std::vector<std::string> problems;

  std::string write(const Stamp& stamp) {
    AgreedState state = example_state(layout, *device);
    state.stamp = stamp;
    state.rows = 100 * stamp.step;
    REQUIRE(CheckpointFolder(folder).write(owner, state, digest_of(state, *device).value()));
    return path_of(stamp);
  }
  [[nodiscard]] std::string path_of(const Stamp& stamp) const {
    return folder + "/" + text_of(stamp) + ".ckpt";
  }
  std::optional<CheckpointFolder::Found> newest(const StateOwner& of = owner) {
    problems.clear();
    return CheckpointFolder(folder).newest({of, layout, *device}, problems);
  }
};

/// Permits N changes of the disk, and no more.
struct BreakingDisk final : FileOperations {
  mutable int left = 0;
  ssize_t write(int fd, std::span<const std::byte> bytes) const override {
    return take() ? FileOperations::write(fd, bytes) : -1;
  }
  int sync(int fd) const override { return take() ? FileOperations::sync(fd) : -1; }
  int rename(const std::string& from, const std::string& to) const override {
    return take() ? FileOperations::rename(from, to) : -1;
  }
  int make_folders(const std::string& path) const override {
    return take() ? FileOperations::make_folders(path) : -1;
  }

 private:
  [[nodiscard]] bool take() const {
    if (left-- > 0) return true;
    errno = EIO;
    return false;
  }
};

}  // namespace

TEST_CASE(
    "Damaged checkpoints: whichever byte of the newest has changed, the one before it is found, and it is "
    "said") {
  Bench b;
  const auto older = b.write({1, 40});
  const auto newer = b.write({2, 70});
  REQUIRE(b.newest()->path == newer);
  CHECK_FALSE(b.newest()->damaged);
  const std::size_t bytes = fs::file_size(newer);
  const std::size_t model_ends = 64 + 24 + 28 + 1;  // head, head of the section, its values, the model's name
  for (std::size_t at = 0; at < bytes; ++at) {
    CAPTURE(at);
    flip(newer, at);
    const auto found = b.newest();
    REQUIRE(found);
    CHECK(found->path == older);
    REQUIRE(found->damaged);
    CHECK(found->damaged->path == newer);
    CHECK(found->damaged->stamp == Stamp{2, 70});
    const bool known = at < 64 || at >= model_ends || (at >= 68 && at < 72);  // four zeros have no meaning
    CHECK(found->damaged->rows == (known ? std::optional<std::uint64_t>(7000) : std::nullopt));
    flip(newer, at);
  }
  for (const std::size_t left : {std::size_t{0}, std::size_t{63}, bytes - 1}) {
    fs::resize_file(newer, left);
    CHECK(b.newest()->damaged);
  }
}

TEST_CASE("Damaged checkpoints: what cannot be used for another reason is not called damaged") {
  Bench b;
  b.write({1, 40});
  SUBCASE("of another model") {
    AgreedState state = example_state(b.layout, *b.device);
    state.stamp = {2, 70};
    REQUIRE(
        CheckpointFolder(b.folder).write({"other", "pumps", {}}, state, digest_of(state, *b.device).value()));
  }
  SUBCASE("with a name that is not a stamp") {
    std::ofstream(b.folder + "/note.ckpt") << "not a state";
  }
  SUBCASE("older than the one that can be used") {
    flip(b.write({1, 30}), 100);
    flip(b.write({1, 20}), 10);
  }
  const auto found = b.newest();
  REQUIRE(found);
  CHECK(found->state.stamp == Stamp{1, 40});
  CHECK_FALSE(found->damaged);
}

TEST_CASE("Going back: what is newer is kept aside, damaged or not, and the folder remembers to where") {
  Bench b;
  for (std::uint64_t step = 1; step <= 4; ++step) b.write({1, step});
  flip(b.write({2, 1}), 20);
  CheckpointFolder folder(b.folder);
  CHECK_FALSE(folder.rollback_requested());
  const auto gone = folder.roll_back({1, 2});
  REQUIRE(gone);
  const std::string aside = b.folder + "/newer-1";
  CHECK(gone.value().folder == aside);
  CHECK(gone.value().aside ==
        std::vector<std::string>{aside + "/1.3.ckpt", aside + "/1.4.ckpt", aside + "/2.1.ckpt"});
  for (const auto& path : gone.value().aside) CHECK(fs::exists(path));
  CHECK(b.newest()->state.stamp == Stamp{1, 2});
  CHECK_FALSE(b.newest()->damaged);
  CHECK(folder.rollback_requested() == Stamp{1, 2});
  const auto again = folder.roll_back({1, 1});
  REQUIRE(again);
  CHECK(again.value().aside == std::vector<std::string>{b.folder + "/newer-2/1.2.ckpt"});
  CHECK(folder.rollback_requested() == Stamp{1, 1});
  const auto nothing = folder.roll_back({1, 1});
  REQUIRE(nothing);
  CHECK(nothing.value().aside.empty());
  CHECK(nothing.value().folder.empty());
  folder.forget_going_back();
  CHECK_FALSE(folder.rollback_requested());
  std::ofstream(b.folder + "/goes-back") << "1.2 and more";
  CHECK_FALSE(folder.rollback_requested());
}

TEST_CASE("Going back: interrupted anywhere, the newest is where it was, or all is done") {
  bool done = false;
  int refused = 0;
  for (int changes = 0; !done; ++changes) {
    CAPTURE(changes);
    REQUIRE(changes < 100);
    Bench b;
    for (std::uint64_t step = 1; step <= 4; ++step) b.write({1, step});
    BreakingDisk disk;
    disk.left = changes;
    CheckpointFolder folder(b.folder, disk);
    const auto gone = folder.roll_back({1, 1});
    done = bool(gone);
    if (!gone) {
      ++refused;
      CHECK(contains(gone.error().message, b.folder));
    }
    const Stamp newest = b.newest()->state.stamp;
    CHECK((newest == Stamp{1, 4} || (newest == Stamp{1, 1} && folder.rollback_requested() == Stamp{1, 1})));
    if (done) CHECK(newest == Stamp{1, 1});
  }
  CHECK(refused > 6);
}
