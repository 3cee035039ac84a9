#pragma once
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/config/config.h"
#include "tests/support/temp_dir.h"

/// Configurations as text, for tests of the loader.
namespace rivulet::testing {

inline const runtime::CatalogNames all_names{
    {"csv", "json", "raw"},       {"cnn", "lenet5", "linear", "mlp"}, {"fixed", "stream", "unified"},
    {"adam", "adamw", "sgd"},     {"none", "fixed", "auto"},          {"dense"},
    {"every", "periodic", "auto"}};

inline runtime::ConfigInput input_of(const std::string& file = "") {
  runtime::ConfigInput input;
  input.file = file;
  input.catalog = all_names;
  input.variable = [](const std::string& name) -> std::optional<std::string> {
    if (name == "HOSTNAME") return "edge-7";
    if (name == "EMPTY") return "";
    if (name == "ROWS") return "77";
    if (name == "SITE") return "plant";
    return std::nullopt;
  };
  return input;
}

using Lines = std::vector<std::string>;

/// A configuration from --set only, without a file.
inline runtime::LoadedConfig with_sets(Lines sets) {
  auto input = input_of();
  sets.insert(sets.begin(), {"job.name=j", "source.kafka.properties.bootstrap.servers=h:1"});
  if (sets.back().find("topics") == std::string::npos) sets.insert(sets.begin(), "source.topics=t");
  input.sets = std::move(sets);
  return runtime::load_config(input);
}

/// All problems, one line each.
inline Lines texts(const runtime::LoadedConfig& loaded) {
  Lines out;
  for (const auto& problem : loaded.problems) out.push_back(problem.text());
  return out;
}

/// Files in a temporary folder.
struct Files {
  TempDir dir;
  std::string write(const std::string& name, const std::string& text) {
    const auto path = (dir.path() / name).string();
    std::ofstream(path) << text;
    return path;
  }
};

/// Loads a text as device.toml and returns all problems, one line each.
struct LoadedText {
  TempDir dir;
  runtime::ConfigInput input;
  runtime::LoadedConfig config;

  explicit LoadedText(const std::string& text, const std::vector<std::string>& sets = {}) {
    const std::string file = (dir.path() / "device.toml").string();
    std::ofstream(file) << text;
    input = input_of(file);
    input.sets = sets;
    config = runtime::load_config(input);
  }
  [[nodiscard]] std::vector<std::string> problems() const {
    std::vector<std::string> texts;
    const std::string folder = dir.path().string() + "/";
    for (const auto& problem : config.problems) {
      std::string text = problem.text();
      for (auto at = text.find(folder); at != std::string::npos; at = text.find(folder))
        text.erase(at, folder.size());
      texts.push_back(text);
    }
    return texts;
  }
};

/// The minimal valid configuration, in seven lines. Tests append to it.
inline const std::string config_base = R"(version = 1
[job]
name = "mnist"
[source]
topics = ["mnist"]
[source.kafka.properties]
bootstrap.servers = "localhost:9092"
)";

inline std::vector<std::string> problems_of(const std::string& text) {
  return LoadedText(text).problems();
}

}  // namespace rivulet::testing
