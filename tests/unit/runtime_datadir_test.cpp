// Owner of a data directory, and exclusive access to it.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "runtime/process/data_dir.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;
namespace fs = std::filesystem;

namespace {

const DataOwner owner{"ovens", "a"};

void claim(const fs::path& path, const DataOwner& by = owner) {
  DataDir held;
  REQUIRE(held.take(path.string(), by));
  REQUIRE(held.claim());
}

std::size_t entries(const fs::path& path) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("Data directory: belongs to the job and device that claimed it, over any number of starts") {
  const TempDir folder;
  for (int start = 0; start < 3; ++start) claim(folder.path());
  CHECK(read_file(folder.path() / "owner") == "job ovens\ndevice a\n");
}

TEST_CASE("Data directory: another job or device is refused, whose it is is named, and nothing is written") {
  const TempDir folder;
  claim(folder.path());
  fs::remove(folder.path() / "lock");
  for (const auto& other : {DataOwner{"kilns", "a"}, DataOwner{"ovens", "b"}, DataOwner{"ovens a", ""}}) {
    DataDir held;
    const auto taken = held.take(folder.path().string(), other);
    REQUIRE_FALSE(taken);
    CHECK(taken.error().code == ErrorCode::invalid_config);
    CHECK(contains(taken.error().message, "belongs to device a of job ovens"));
    CHECK(contains(taken.error().message, folder.path().string()));
  }
  CHECK(entries(folder.path()) == 1);  // nor a lock
}

TEST_CASE("Data directory: a command need not know its device, but must know its job") {
  const TempDir folder;
  claim(folder.path());
  DataDir held;
  CHECK_FALSE(held.take(folder.path().string(), {"kilns", ""}));
  CHECK(held.take(folder.path().string(), {"ovens", ""}));
}

TEST_CASE("Data directory: who only takes it leaves it to the first who claims it") {
  const TempDir folder;
  {
    DataDir looking;
    REQUIRE(looking.take(folder.path().string(), {"dry", "run"}));
  }
  claim(folder.path());
  CHECK_FALSE(check_owner(folder.path().string(), {"dry", "run"}));
}

TEST_CASE("Data directory: a mark that cannot be read is nobody's permission") {
  const TempDir folder;
  for (const char* mark :
       {"", "job ovens\n", "job ovens\ndevice a\nmore\n", "device a\njob ovens\n", "\xff\xfe"}) {
    CAPTURE(mark);
    folder.write("owner", mark);
    const auto own = check_owner(folder.path().string(), owner);
    REQUIRE_FALSE(own);
    CHECK(contains(own.error().message, "owner"));
  }
  folder.write("owner", std::string(100'000, 'x'));
  CHECK_FALSE(check_owner(folder.path().string(), owner));
  fs::remove(folder.path() / "owner");
  fs::create_directory(folder.path() / "owner");
  CHECK_FALSE(check_owner(folder.path().string(), owner));
}

TEST_CASE("Data directory: one process at a time, by whatever path it comes") {
  const TempDir folder;
  fs::create_directory_symlink(folder.path() / "real", folder.path() / "other");
  DataDir first;
  REQUIRE(first.take((folder.path() / "real").string(), owner));
  DataDir second;
  const auto taken = second.take((folder.path() / "other").string(), owner);
  REQUIRE_FALSE(taken);
  CHECK(contains(taken.error().message, "in use by another rivulet run"));
}
