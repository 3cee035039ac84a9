#pragma once
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "runtime/decisions/decision.h"

namespace rivulet::runtime {

/// Reads all files of a decision log (runtime/decisions/decision_files.h) from the oldest line on, even while
/// a device writes it. Keeps one line in memory. Owner: one thread.
class DecisionReader {
 public:
  /// Errors: io (no such file).
  static Result<DecisionReader> open(const std::string& path);
  /// Returns the next record; nullopt at the end. Skips an incomplete last line and reports it in torn().
  /// Errors: bad_record, io (both with file and line).
  Result<std::optional<DecisionRecord>> next();
  /// Place of the last record: "decisions.jsonl: line 12".
  [[nodiscard]] std::string place() const;
  /// Place of an incomplete line; empty if there is none.
  [[nodiscard]] const std::string& torn() const noexcept { return torn_; }
  /// Describes the missing files, one sentence each.
  [[nodiscard]] const std::vector<std::string>& missing() const noexcept { return missing_; }
  /// True if a file is missing between the last record and the previous one.
  [[nodiscard]] bool behind_gap() const noexcept { return behind_gap_; }

 private:
  enum class Line : std::uint8_t { whole, none, too_long };
  struct File {
    std::uint64_t number;
    std::string path;
    std::ifstream in;    ///< opened in advance: the device may rename or delete the file
    std::uint64_t left;  ///< unread bytes, as of the time of opening
  };
  DecisionReader(std::vector<File> files, std::vector<std::string> missing)
      : files_(std::move(files)), missing_(std::move(missing)) {}
  bool open_next_file();
  Line read_line();

  std::vector<File> files_;
  std::vector<std::string> missing_;
  std::size_t opened_ = 0;
  bool behind_gap_ = false;
  std::string block_;
  std::size_t at_ = 0;  ///< position in block_
  std::string line_;
  std::uint64_t number_ = 0;
  std::string torn_;
};

}  // namespace rivulet::runtime
