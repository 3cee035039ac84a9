#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace rivulet::testing {

/// A fresh folder under the system's temporary folder, removed with everything in it at the end.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  /// Writes `text` to `relative` (folders are made) and returns the whole path.
  std::filesystem::path write(const std::filesystem::path& relative, std::string_view text) const;

 private:
  std::filesystem::path path_;
};

/// The whole file, or empty when it is not there.
std::string read_file(const std::filesystem::path& path);

/// Changes one bit of the byte at `at`; done twice, the file is as it was.
void flip(const std::filesystem::path& path, std::uint64_t at);

}  // namespace rivulet::testing
