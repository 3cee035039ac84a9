// Two copies of Gloo in one process receive each other's calls and crash, so only LibTorch's may be loaded.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "tests/support/places.h"
#include "tests/support/process.h"

using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

/// The program and all shared objects that the loader would map for it.
std::vector<std::string> objects_of(const std::string& program) {
  const RunOutput listed = run({.command = {"ldd", program}}, 30s);
  REQUIRE_MESSAGE(listed.status.code == 0, listed.errors);
  std::vector<std::string> objects{program};
  std::istringstream words(listed.output);
  for (std::string word; words >> word;) {
    REQUIRE_MESSAGE(word != "not", "a library is missing: " << listed.output);
    if (word.front() == '/') objects.push_back(word);
  }
  return objects;
}

/// Global functions of Gloo's devices that only a full copy has; excludes functions of our own. Weak ones
/// (templates, inline functions) are ignored: users of a header have those too. A program's functions are in
/// its static table, a library's in its dynamic one.
int transport_functions(const std::string& object, bool dynamic) {
  const RunOutput symbols = run({.command = {"nm", dynamic ? "-D" : "-g", "--defined-only", object}}, 60s);
  REQUIRE_MESSAGE(symbols.status.code == 0, symbols.errors);
  std::istringstream lines(symbols.output);
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" T _ZN4gloo9transport3tcp6Device8shutdown") != std::string::npos) ++count;
  }
  return count;
}

std::vector<std::string> copies_of_gloo(const std::string& program) {
  std::vector<std::string> copies;
  for (const std::string& object : objects_of(program)) {
    if (transport_functions(object, object != program) > 0) copies.push_back(object);
  }
  return copies;
}

}  // namespace

TEST_CASE("Canary: a second copy of Gloo is found, and a part of it for GPUs is none") {
  const std::vector<std::string> copies = copies_of_gloo(RIVULET_TWO_GLOOS);
  REQUIRE(copies.size() == 2);
  CHECK(std::any_of(copies.begin(), copies.end(),
                    [](const std::string& path) { return path.find("planted_gloo") != std::string::npos; }));
  const RunOutput doctor = run({.command = {RIVULET_TWO_GLOOS}}, 60s);
  REQUIRE(doctor.status.code == 0);
  CHECK_MESSAGE(doctor.output.starts_with("fail  Gloo copies          2: "), doctor.output);
  CHECK_MESSAGE(doctor.output.find("planted_gloo") != std::string::npos, doctor.output);
  CHECK_MESSAGE(doctor.output.find("planted_gpu_part") == std::string::npos, doctor.output);
}

TEST_CASE("Canary: rivulet loads exactly one Gloo, the one of LibTorch") {
  const std::vector<std::string> copies = copies_of_gloo(rivulet_binary());
  REQUIRE(copies.size() == 1);
  CHECK(copies.front().find("libtorch_cpu.so") != std::string::npos);
}
