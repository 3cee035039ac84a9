// Faults of the simulated disk and log are those of real ones.
#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/node/new_run.h"
#include "tests/support/sim_disk.h"
#include "tests/support/sim_log.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

constexpr const char* path = "/folder/file";

std::vector<std::byte> contents(std::size_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

std::string read_all(OrderedLog& log) {
  std::string text;
  const auto entries = log.poll(100);
  REQUIRE(entries);
  for (const auto& entry : entries.value())
    for (const std::byte byte : entry.bytes) text += static_cast<char>(byte);
  return text;
}

void say(OrderedLog& log, char letter) {
  const std::byte byte{static_cast<unsigned char>(letter)};
  REQUIRE(log.append(std::span(&byte, 1)));
}

}  // namespace

TEST_CASE(
    "Disk: a whole file survives any loss of power once it was written, and before that it is old or new") {
  int torn = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    for (int effects = 0; effects < 12; ++effects) {
      SimPower power;
      SimDisk disk(power);
      REQUIRE(runtime::write_whole_file(path, contents(100, 1), disk));
      power.fail_after(effects);
      const bool written = static_cast<bool>(runtime::write_whole_file(path, contents(100, 2), disk));
      power.restore();
      Rng rng(seed);
      disk.lose_power(rng);
      const auto read = runtime::read_whole_file(path, 1000, disk);
      REQUIRE(read);
      const bool is_old = read.value() == contents(100, 1);
      const bool is_new = read.value() == contents(100, 2);
      CHECK((is_old || is_new));
      if (written) CHECK(is_new);
      for (const auto& file : disk.files_in("/folder"))
        torn += file != path && runtime::read_whole_file(file, 1000, disk).value().size() != 100 ? 1 : 0;
    }
  }
  CHECK(torn > 0);  // some files were torn
}

TEST_CASE("Disk: what was not synced may be torn, and a renamed file empty") {
  bool whole = false, part = false, gone = false, blank = false;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SimPower power;
    SimDisk disk(power);
    const int fd = disk.open("/folder/new", 0101);  // O_WRONLY | O_CREAT
    const auto bytes = contents(100, 7);
    REQUIRE(disk.write(fd, bytes) == 50);
    REQUIRE(disk.rename("/folder/new", path) == 0);
    CHECK_FALSE(disk.is_durable(path));
    Rng rng(seed);
    disk.lose_power(rng);
    const auto read = runtime::read_whole_file(path, 1000, disk);
    gone = gone || !read;
    if (!read) continue;
    whole = whole || read.value() == contents(50, 7);
    part = part || (read.value().size() < 50 && !read.value().empty());
    blank = blank || read.value() == contents(50, 0);
  }
  CHECK(whole);
  CHECK(part);
  CHECK(gone);
  CHECK(blank);
}

TEST_CASE("Disk: one that is full, fails, rots or cannot be read") {
  SimPower power;
  SimDisk disk(power);
  REQUIRE(runtime::write_whole_file(path, contents(100, 1), disk));
  CHECK(disk.is_durable(path));
  disk.fail_calls(1, ENOSPC);
  CHECK(runtime::write_whole_file(path, contents(100, 2), disk).error().code == ErrorCode::unavailable);
  disk.fail_calls(1, EIO);
  CHECK(runtime::write_whole_file(path, contents(100, 2), disk).error().code == ErrorCode::io);
  CHECK(runtime::read_whole_file(path, 1000, disk).value() == contents(100, 1));
  disk.make_unreadable(true);
  CHECK_FALSE(runtime::read_whole_file(path, 1000, disk));
  disk.make_unreadable(false);
  Rng rng(1);
  disk.rot(rng);
  const auto rotten = runtime::read_whole_file(path, 1000, disk).value();
  const auto same = std::count(rotten.begin(), rotten.end(), std::byte{1});
  CHECK(same == 99);
  disk.wipe();
  CHECK(disk.files_in("/folder").empty());
}

TEST_CASE("Disk: it knows which files are whole, whether or not anybody can read them") {
  SimPower power;
  SimDisk disk(power);
  const std::vector<std::string> both = {"/folder/file", "/folder/other"};
  for (const auto& file : both) REQUIRE(runtime::write_whole_file(file, contents(100, 1), disk));
  disk.make_unreadable(true);
  CHECK(disk.whole_files_in("/folder") == both);
  Rng rng(1);
  disk.lose_power(rng);
  CHECK(disk.whole_files_in("/folder") == both);
  disk.rot(rng);
  CHECK(disk.whole_files_in("/folder") == std::vector{both[0]});
  const int fd = disk.open("/folder/half", 0101);  // O_WRONLY | O_CREAT
  REQUIRE(disk.write(fd, contents(100, 2)) > 0);
  CHECK(disk.whole_files_in("/folder") == std::vector{both[0]});
  disk.wipe();
  CHECK(disk.whole_files_in("/folder").empty());
}

TEST_CASE("Disk: checkpoints that were kept aside for a new run do not come back with a loss of power") {
  const auto device = devices::make_host_device();
  const devices::ModelLayout layout{Scalar::f64, 3, 0, {{"sums", {3}, 0, 3}}, {}};
  const runtime::AgreedState state{devices::ModelState::create(layout, *device).value(), {1, 40}, 0, {}};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimPower power;
    SimDisk disk(power);
    runtime::CheckpointFolder folder("/folder", disk);
    REQUIRE(folder.write({"m", "", {}}, state, runtime::digest_of(state, *device).value()));
    REQUIRE(runtime::keep_aside("/folder", disk).value() == "/folder/before-1");
    Rng rng(seed);
    disk.lose_power(rng);
    std::vector<std::string> problems;
    CHECK(folder.list(problems).empty());
    CHECK(runtime::CheckpointFolder("/folder/before-1", disk).list(problems).size() == 1);
  }
}

TEST_CASE("Log: one order for all, late, with records that are lost, repeated and overtaken") {
  SimLog log(2);
  VirtualClock clock;
  SimPower power;
  const auto a = log.open(0, clock, power);
  const auto b = log.open(1, clock, power);
  log.next_fate(0, {.later = std::chrono::milliseconds(50)});
  say(*a, 'd');
  log.next_fate(0, {.again = std::chrono::milliseconds(20)});
  say(*a, 'r');
  log.next_fate(0, {.lost = true});
  say(*a, 'l');
  say(*b, 'b');
  CHECK(read_all(*b).empty());
  clock.advance_by(std::chrono::seconds(1));
  CHECK(read_all(*a) == "rbrd");
  CHECK(read_all(*b) == "rbrd");
  log.stay_away(1, clock.now() + std::chrono::seconds(1));
  CHECK(b->poll(10).error().code == ErrorCode::source_lost);
  say(*b, 'x');
  say(*a, 'y');
  clock.advance_by(std::chrono::seconds(2));
  CHECK(read_all(*b) == "yx");
  log.stay_away(1, clock.now() + std::chrono::seconds(1));
  say(*b, 'z');
  log.forget_unsent(1, clock.now());  // its process has ended
  power.fail_after(0);
  say(*a, 'p');
  clock.advance_by(std::chrono::seconds(2));
  CHECK(read_all(*a) == "yx");
}
