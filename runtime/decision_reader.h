#pragma once
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "runtime/decision.h"

namespace rivulet::runtime {

/// Reads a decision log from its oldest line: PATH.1 first, if it is there. One line is in memory at a time.
/// Owner: one thread.
class DecisionReader {
 public:
  /// Errors: io (there is no such file).
  static Result<DecisionReader> open(const std::string& path);
  /// None: that was all. A last line that was cut short is left out, and torn() says so. Errors: bad_record,
  /// io (both with file and line).
  Result<std::optional<DecisionRecord>> next();
  /// Of the record that came last: "decisions.jsonl: line 12".
  [[nodiscard]] std::string place() const;
  /// Where a line was cut short; empty if none was.
  [[nodiscard]] const std::string& torn() const noexcept { return torn_; }

 private:
  enum class Line : std::uint8_t { whole, none, too_long };
  explicit DecisionReader(std::vector<std::string> files) : files_(std::move(files)) {}
  bool open_next_file();
  Line read_line();

  std::vector<std::string> files_;
  std::size_t opened_ = 0;
  std::ifstream in_;
  std::string path_;
  std::string block_;
  std::size_t at_ = 0;  ///< in block_
  std::string line_;
  std::uint64_t number_ = 0;
  std::string torn_;
};

}  // namespace rivulet::runtime
