#include "tests/support/entry_names.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <regex>
#include <set>

#include "tests/support/source_text.h"

namespace rivulet::testing {
namespace {

namespace fs = std::filesystem;

/// Folders whose files are catalog entries. Decoders are excluded: their names are also file formats.
constexpr std::array folders{"devices/model",    "devices/optimizer",
                             "sync/compressor",  "sync/collective/aggregation",
                             "sync/controllers", "sync/published"};

/// Files with only the defaults of a configuration.
constexpr std::array defaults{"runtime/config/config.h", "sync/message/plan.h"};

/// Names that are also common words. They are searched only where compared with or looked up as an entry.
const std::set<std::string>& common_words() {
  static const std::set<std::string> words{"auto", "every", "fixed",  "random", "step",
                                           "sum",  "ring",  "stream", "linear", "constant"};
  return words;
}

bool is_entry(const SourceText& source) {
  const std::string path = source.path.generic_string();
  const bool inside = std::ranges::any_of(
      folders, [&](const char* folder) { return path.starts_with(std::string(folder) + "/"); });
  static const std::regex definition(R"(^(const|extern const) \w+Entry \w+_\w+)");
  return inside && source.path.extension() == ".cpp" &&
         std::ranges::any_of(source.code,
                             [](const std::string& line) { return std::regex_search(line, definition); });
}

/// Names of entries, with the files that define them.
std::map<std::string, std::set<fs::path>> entry_names(const std::vector<SourceText>& sources) {
  std::map<std::string, std::set<fs::path>> names;
  for (const SourceText& source : sources) {
    if (!is_entry(source)) continue;
    std::string name = source.path.stem().string();
    names[name].insert(source.path);
    std::ranges::replace(name, '_', '-');
    names[name].insert(source.path);
  }
  return names;
}

/// The literal that begins at `at`; none inside a comment.
std::optional<std::string> literal_at(const SourceText& source, std::size_t line, std::size_t at) {
  const std::string& raw = source.raw[line];
  const std::size_t end = raw.find('"', at + 1);
  const bool inside = source.literals[line][at] == '"';  // of another literal
  if (inside || end == std::string::npos || end == at + 1) return std::nullopt;
  const std::string text = raw.substr(at + 1, end - at - 1);
  if (source.literals[line].compare(at + 1, text.size(), text) != 0) return std::nullopt;
  return text;
}

bool selects_an_entry(const std::string& before) {
  static const std::regex compared(
      R"((policy|collective|compressor|optimizer|lr_schedule|model|model\.name)\)?\s*[!=]=\s*$)");
  static const std::regex looked_up(
      R"((_named|entry_for|use_collective|compress_with|way_of|payloads_sent)\s*\([^;"]*$)");
  return std::regex_search(before, compared) || std::regex_search(before, looked_up);
}

}  // namespace

Findings check_entry_names(const fs::path& root) {
  Findings findings;
  const auto sources = read_sources(root, {"core", "stream", "devices", "sync", "runtime"});
  const auto names = entry_names(sources);
  for (const SourceText& source : sources) {
    if (std::ranges::find(defaults, source.path.generic_string()) != defaults.end()) continue;
    for (std::size_t line = 0; line < source.raw.size(); ++line) {
      for (std::size_t at = source.raw[line].find('"'); at != std::string::npos;
           at = source.raw[line].find('"', at + 1)) {
        const auto text = literal_at(source, line, at);
        const auto known = text ? names.find(*text) : names.end();
        if (known == names.end() || known->second.contains(source.path)) continue;
        if (common_words().contains(*text) && !selects_an_entry(source.raw[line].substr(0, at))) continue;
        findings.push_back(source.path.generic_string() + ":" + std::to_string(line + 1) +
                           ": names entry \"" + *text + "\" of " + known->second.begin()->generic_string());
      }
    }
  }
  return findings;
}

}  // namespace rivulet::testing
