#pragma once
#include <doctest/doctest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/kafka_server.h"
#include "tests/support/model_fixture.h"
#include "tests/support/places.h"
#include "tests/support/process.h"

namespace rivulet::testing {

/// Writes the features for programs/model_outputs.py: little-endian float32.
inline void write_features(const Rows& rows, const std::string& file) {
  const auto bytes = std::as_bytes(rows.features());
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

/// Runs programs/model_outputs.py on an exported model; `shape`: of one row, "1,28,28".
inline nlohmann::json outputs_in_python(const std::string& model, const std::string& exported,
                                        const std::string& features, const std::string& shape) {
  ProcessOptions python;
  python.command = {"/usr/bin/python3",
                    source_path("tests/support/programs/model_outputs.py"),
                    model,
                    exported,
                    features,
                    shape};
  python.environment["PYTHONPATH"] = (kafka_jars().parent_path() / "python-tests").string();
  const auto said = run(python, std::chrono::seconds(120));
  INFO("scripts/setup --for tests brings what this needs");
  INFO(said.errors);
  REQUIRE(said.status.code == 0);
  return nlohmann::json::parse(said.output);
}

}  // namespace rivulet::testing
