// fuzz_corpus FOLDER           checks that the stored seeds match the present encoders
// fuzz_corpus FOLDER --write   writes them
// Seeds are FOLDER/<target>/seed-NN. Other files there are inputs that once revealed a bug, and are kept.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "tests/fuzz/target.h"

namespace {

namespace fs = std::filesystem;
using rivulet::fuzz::Bytes;

std::string seed_name(std::size_t number) {
  return "seed-" + std::string(number < 10 ? "0" : "") + std::to_string(number);
}

Bytes read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

void write_file(const fs::path& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

/// Removes seeds that no encoder writes any more.
void remove_old(const fs::path& folder, const std::set<std::string>& names) {
  for (const auto& file : fs::directory_iterator(folder)) {
    const std::string name = file.path().filename().string();
    if (name.starts_with("seed-") && !names.contains(name)) fs::remove(file.path());
  }
}

/// Returns the number of a target's seeds that differ from the files.
int handle(const rivulet::fuzz::Target& target, const fs::path& folder, bool write) {
  int different = 0;
  std::set<std::string> names;
  if (write) fs::create_directories(folder);
  for (const Bytes& seed : target.seeds()) {
    const std::string name = seed_name(names.size());
    names.insert(name);
    if (write) write_file(folder / name, seed);
    if (read_file(folder / name) == seed) continue;
    std::fprintf(stderr, "%s is not what is written today\n", (folder / name).c_str());
    ++different;
  }
  if (write) remove_old(folder, names);
  return different;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  int different = 0;
  for (const auto* target : rivulet::fuzz::targets())
    different += handle(*target, fs::path(argv[1]) / target->name, argc > 2);
  if (different == 0) return 0;
  std::fprintf(stderr, "write the seeds again: %s %s --write\n", argv[0], argv[1]);
  return 1;
}
