#pragma once
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "runtime/decisions/decision.h"

namespace rivulet::runtime {

/// Reads a decision log from its oldest line: all its files (runtime/decisions/decision_files.h), also while
/// a device keeps writing it. One line is in memory at a time. Owner: one thread.
class DecisionReader {
 public:
  /// Errors: io (there is no such file).
  static Result<DecisionReader> open(const std::string& path);
  /// None: that was all. A last line that was cut short is left out, and torn() is true. Errors: bad_record,
  /// io (both with file and line).
  Result<std::optional<DecisionRecord>> next();
  /// Of the record that came last: "decisions.jsonl: line 12".
  [[nodiscard]] std::string place() const;
  /// Where a line was cut short; empty if none was.
  [[nodiscard]] const std::string& torn() const noexcept { return torn_; }
  /// Files that are not there, in sentences.
  [[nodiscard]] const std::vector<std::string>& missing() const noexcept { return missing_; }
  /// Between the record that came last and the one before it a file is missing.
  [[nodiscard]] bool behind_gap() const noexcept { return behind_gap_; }

 private:
  enum class Line : std::uint8_t { whole, none, too_long };
  struct File {
    std::uint64_t number;
    std::string path;
    std::ifstream in;    ///< open from the start: the device may give it another name, or drop it
    std::uint64_t left;  ///< bytes that were in it then and are not read yet
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
  std::size_t at_ = 0;  ///< in block_
  std::string line_;
  std::uint64_t number_ = 0;
  std::string torn_;
};

}  // namespace rivulet::runtime
