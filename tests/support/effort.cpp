#include "tests/support/effort.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <string_view>

#include "core/check.h"

namespace rivulet::testing {
namespace {

const char* variable(const char* name) {
  return std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace

int repetitions(int quick, int full) {
  const char* asked = variable("RIVULET_FULL");
  return asked != nullptr && std::string_view(asked) == "1" ? full : quick;
}

std::uint64_t seed_or(std::uint64_t usual) {
  return number_or("RIVULET_SEED", usual);
}

std::uint64_t number_or(const char* name, std::uint64_t usual) {
  const char* number = variable(name);
  return number == nullptr ? usual : std::strtoull(number, nullptr, 10);
}

Counts load_progress(const std::string& file) {
  Counts counts;
  const char* folder = variable("SIM_PROGRESS");
  if (folder == nullptr) return counts;
  std::ifstream in(std::filesystem::path(folder) / file);
  std::string name;
  for (double value = 0; in >> name >> value;) counts[name] = value;
  return counts;
}

void save_progress(const std::string& file, const Counts& counts) {
  const char* folder = variable("SIM_PROGRESS");
  if (folder == nullptr) return;
  const auto path = std::filesystem::path(folder) / file;
  const auto begun = path.string() + ".new";
  std::ofstream out(begun);
  out << std::setprecision(17);
  for (const auto& [name, value] : counts) out << name << " " << value << "\n";
  out.close();
  RIVULET_CHECK(!out.fail(), "the progress of a long count cannot be kept");
  std::filesystem::rename(begun, path);
}

void report_figure(const char* name, double value, const char* unit) {
  std::printf("figure: %s = %g %s\n", name, value, unit);
  std::fflush(stdout);
}

}  // namespace rivulet::testing
