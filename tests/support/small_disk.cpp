#include "tests/support/small_disk.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace rivulet::testing {
namespace {

void require(bool done) {
  INFO("mounting needs root: " << std::generic_category().message(errno));
  REQUIRE(done);
}

bool set_size(const std::filesystem::path& at, const std::string& size) {
  return ::mount("none", at.c_str(), nullptr, MS_REMOUNT, ("size=" + size).c_str()) == 0;
}

}  // namespace

SmallDisk::SmallDisk(std::filesystem::path at, const char* size) : at_(std::move(at)) {
  std::filesystem::create_directories(at_);
  require(::unshare(CLONE_NEWNS) == 0);
  require(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
  require(::mount("tmpfs", at_.c_str(), "tmpfs", 0, (std::string("size=") + size).c_str()) == 0);
}

SmallDisk::~SmallDisk() {
  ::umount2(at_.c_str(), MNT_DETACH);
}

void SmallDisk::resize(const char* size) {
  require(set_size(at_, size));
}

// A device may write between looking and setting: the kernel rejects a size below what is used.
void SmallDisk::fill() {
  for (int i = 0; i < 1000; ++i) {
    const auto space = std::filesystem::space(at_);
    if (set_size(at_, std::to_string(space.capacity - space.free + 4096))) return;
  }
  require(false);
}

}  // namespace rivulet::testing
