// --new-run before a device joins: whether it may begin without its state, and where its checkpoints go.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/node/new_run.h"
#include "tests/support/fold_script.h"
#include "tests/support/temp_dir.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;
namespace fs = std::filesystem;

namespace {

/// Adds a checkpoint of that stamp to `folder`; returns its file name.
std::string save(const fs::path& folder, const Stamp& stamp) {
  const auto device = devices::make_host_device();
  const devices::ModelLayout layout{Scalar::f32, 4, 1, {{"weight", {4}, 0, 4}}, {}};
  const AgreedState state{devices::ModelState::create(layout, *device).value(), stamp, 0, {}};
  REQUIRE(CheckpointFolder(folder.string()).write({"m", "", {}}, state, digest_of(state, *device).value()));
  return text_of(stamp) + ".ckpt";
}

/// Paths below `folder`, including folders.
std::vector<std::string> paths_in(const fs::path& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    paths.push_back(fs::relative(entry.path(), folder).string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

TEST_CASE("New run: a state that no view of this log can have made is not taken along") {
  const FoldScript nobody;
  CHECK(begins_empty(nobody.fold, "a", {}));
  CHECK(begins_empty(nobody.fold, "a", {3, 40}));  // of another topic
  FoldScript s;
  s.form({"a", "b"}, true);
  CHECK(begins_empty(s.fold, "a", {2, 1}));  // of a later view
}

TEST_CASE("New run: a device that was killed in the run it wanted keeps what it has of it") {
  FoldScript s;
  s.form({"a", "b"}, true);
  CHECK_FALSE(begins_empty(s.fold, "a", {1, 40}));
  CHECK(begins_empty(s.fold, "a", {}));  // it has no state of it
}

TEST_CASE("New run: a device that begins a run, or joins one that another began, begins it empty") {
  FoldScript s;
  s.form({"a", "b"});
  s.stop();
  CHECK(begins_empty(s.fold, "a", {1, 40}));  // the run begins with its HELLO
  const auto b = s.hello("b", 2, "h", true);
  REQUIRE(s.fold.run.number == 2);
  CHECK(begins_empty(s.fold, "a", {1, 40}));  // the run has begun, and all its states are of later views
  const auto a = s.hello("a", 2, "h", true);
  s.ready("a", a, 2);
  s.ready("b", b, 2);
  s.close("a", a, 2);
  REQUIRE(s.fold.view.number == 2);
  CHECK(begins_empty(s.fold, "a", {1, 40}));
  CHECK_FALSE(begins_empty(s.fold, "a", {2, 7}));
}

TEST_CASE(
    "New run: checkpoints of an earlier run are not in the way of a device that is in the present one") {
  FoldScript s;
  s.form({"a", "b"});
  s.stop();
  const auto a = s.hello("a", 2, "h", true);
  const auto b = s.hello("b", 2, "h", true);
  s.ready("a", a, 2);
  s.ready("b", b, 2);
  s.close("a", a, 2);
  REQUIRE(s.fold.view.number == 2);
  s.leave("a", a);  // its disk was unreadable until now
  Config config;
  config.device.id = "a";
  const auto log = make_null_logger();
  const TempDir folder;
  const auto old = save(folder.path(), {1, 40});
  const auto moved = start_over(s.fold, config, folder.path().string(), *log);
  REQUIRE_FALSE(moved);
  CHECK(moved.error().code == ErrorCode::invalid_config);
  CHECK(moved.error().message.find("start this device without --new-run") != std::string::npos);
  CHECK(paths_in(folder.path()) == std::vector<std::string>{"before-1", "before-1/" + old});
  const auto own = save(folder.path(), {2, 7});
  const auto refused = start_over(s.fold, config, folder.path().string(), *log);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("Nothing was changed") != std::string::npos);
  CHECK(paths_in(folder.path()) == std::vector<std::string>{own, "before-1", "before-1/" + old});
  // After one of this run that may prove damaged.
  const auto behind = save(folder.path(), {1, 41});
  const auto again = start_over(s.fold, config, folder.path().string(), *log);
  REQUIRE_FALSE(again);
  CHECK(again.error().message.find("start this device without --new-run") != std::string::npos);
  CHECK(paths_in(folder.path()) ==
        std::vector<std::string>{own, "before-1", "before-1/" + old, "before-2", "before-2/" + behind});
}

TEST_CASE("New run: without checkpoints nothing is kept aside and nothing is made") {
  const TempDir folder;
  CHECK(keep_aside((folder.path() / "missing").string()).value().empty());
  folder.write("notes.txt", "mine");
  folder.write("7.7.ckpt", "no checkpoint");
  CHECK(keep_aside(folder.path().string()).value().empty());
  CHECK(paths_in(folder.path()) == std::vector<std::string>{"7.7.ckpt", "notes.txt"});
}

TEST_CASE("New run: checkpoints go to the first before-N that is free, each time, and nothing else goes") {
  const TempDir folder;
  const auto one = save(folder.path(), {1, 40});
  const auto two = save(folder.path(), {2, 50});
  folder.write("notes.txt", "mine");
  const auto aside = keep_aside(folder.path().string());
  REQUIRE(aside);
  CHECK(aside.value() == (folder.path() / "before-1").string());
  CHECK(paths_in(folder.path()) ==
        std::vector<std::string>{"before-1", "before-1/" + one, "before-1/" + two, "notes.txt"});
  folder.write("before-2", "a file that is in the way");
  const std::string kept = read_file(folder.path() / "before-1" / one);
  save(folder.path(), {1, 40});  // the same name again
  CHECK(keep_aside(folder.path().string()).value() == (folder.path() / "before-3").string());
  CHECK(read_file(folder.path() / "before-1" / one) == kept);
  CHECK(paths_in(folder.path()) == std::vector<std::string>{"before-1", "before-1/" + one, "before-1/" + two,
                                                            "before-2", "before-3", "before-3/" + one,
                                                            "notes.txt"});
  std::vector<std::string> problems;
  CHECK(CheckpointFolder(folder.path().string()).list(problems).empty());
}
