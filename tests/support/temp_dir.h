#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace rivulet::testing {

/// A new folder under the system's temporary folder, removed with its contents by the destructor.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  /// Writes `text` to `relative`, creating folders, and returns the full path.
  std::filesystem::path write(const std::filesystem::path& relative, std::string_view text) const;

 private:
  std::filesystem::path path_;
};

/// Returns the whole file; empty if missing.
std::string read_file(const std::filesystem::path& path);

/// Flips one bit of the byte at `at`; a second call restores the file.
void flip(const std::filesystem::path& path, std::uint64_t at);

}  // namespace rivulet::testing
