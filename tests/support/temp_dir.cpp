#include "tests/support/temp_dir.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <utility>

#include "core/check.h"

namespace rivulet::testing {

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "rivulet-test-XXXXXX").string();
  RIVULET_CHECK(mkdtemp(name.data()) != nullptr, "cannot make a temporary folder");
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path TempDir::write(const std::filesystem::path& relative, std::string_view text) const {
  const std::filesystem::path path = path_ / relative;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.flush();
  RIVULET_CHECK(file.good(), "cannot write a temporary file");
  return path;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();  // ends at a read error: a process of /proc may end during the read
  return std::move(text).str();
}

void flip(const std::filesystem::path& path, std::uint64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const char byte = static_cast<char>(file.get() ^ 4);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(byte);
  RIVULET_CHECK(file.good(), "cannot change a byte of a file");
}

}  // namespace rivulet::testing
