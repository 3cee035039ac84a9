#pragma once
#include <filesystem>

namespace rivulet::testing {

/// A tmpfs of limited size in this process's own mount namespace: no other process sees it, except those
/// started from now on, and it disappears with this process. Needs root. Failures fail the doctest case.
class SmallDisk {
 public:
  SmallDisk(std::filesystem::path at, const char* size);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  void resize(const char* size);
  void fill();  ///< leaves no room; resize() makes room again

 private:
  std::filesystem::path at_;
};

}  // namespace rivulet::testing
