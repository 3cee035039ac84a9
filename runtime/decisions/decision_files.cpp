#include "runtime/decisions/decision_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

namespace rivulet::runtime {
namespace {

namespace fs = std::filesystem;

/// The number of a file: 12 for "decisions.jsonl.12".
std::optional<std::uint64_t> number_in(std::string_view name, const std::string& first) {
  if (!name.starts_with(first + ".")) return std::nullopt;
  name.remove_prefix(first.size() + 1);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = error == std::errc{} && end == name.data() + name.size() && name.front() != '0';
  return whole ? std::optional(number) : std::nullopt;
}

std::string range(const std::string& path, std::uint64_t first, std::uint64_t last) {
  const std::string begin = path + "." + std::to_string(first);
  return first == last ? begin : begin + " to ." + std::to_string(last);
}

}  // namespace

std::vector<DecisionFile> decision_files(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  const std::string name = fs::path(path).filename().string();
  std::vector<DecisionFile> files;
  std::error_code error;
  for (fs::directory_iterator it(folder.empty() ? "." : folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    const auto number = number_in(it->path().filename().string(), name);
    if (number && it->is_regular_file(ignored))
      files.push_back({*number, path + "." + std::to_string(*number), it->file_size(ignored)});
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  if (fs::is_regular_file(path, error))
    files.push_back({files.empty() ? 1 : files.back().number + 1, path, fs::file_size(path, error)});
  return files;
}

std::vector<std::string> missing_decision_files(const std::string& path,
                                                const std::vector<DecisionFile>& files) {
  std::vector<std::string> missing;
  std::uint64_t next = 1;
  for (const auto& file : files) {
    if (file.number > next)
      missing.push_back(next == 1 ? range(path, next, file.number - 1) +
                                        " were deleted: the log has reached log.decisions_max"
                                  : range(path, next, file.number - 1) + " are missing");
    next = file.number + 1;
  }
  return missing;
}

}  // namespace rivulet::runtime
