#pragma once
#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include "tests/support/places.h"
#include "tests/support/temp_dir.h"

namespace rivulet::testing {

/// Creates the files of tests/support/sensor_trees/NAME.txt: one "path = content" per line; "\n" in a content
/// is a newline.
inline void plant_sensors(const TempDir& root, const std::string& name) {
  std::istringstream lines(read_file(source_path("tests/support/sensor_trees/") + name + ".txt"));
  int files = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    const auto equals = line.find(" = ");
    REQUIRE(equals != std::string::npos);
    std::string content = line.substr(equals + 3);
    for (auto at = content.find("\\n"); at != std::string::npos; at = content.find("\\n", at))
      content.replace(at, 2, "\n");
    root.write(line.substr(0, equals), content.ends_with('\n') ? content : content + "\n");
    ++files;
  }
  REQUIRE(files > 0);
}

}  // namespace rivulet::testing
