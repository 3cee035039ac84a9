#include "runtime/decision_reader.h"

#include <filesystem>

namespace rivulet::runtime {
namespace {

constexpr std::size_t read_block_bytes = std::size_t{64} << 10;

}  // namespace

Result<DecisionReader> DecisionReader::open(const std::string& path) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const std::string& file : {path + ".1", path})
    if (std::filesystem::is_regular_file(file, ignored)) files.push_back(file);
  if (files.empty() || files.back() != path)
    return Error{ErrorCode::io, "there is no decision log " + path +
                                    " (a device writes it to decisions.jsonl in its device.data_dir)"};
  return DecisionReader(std::move(files));
}

bool DecisionReader::open_next_file() {
  if (opened_ == files_.size()) return false;
  path_ = files_[opened_++];
  in_ = std::ifstream(path_, std::ios::binary);
  block_.clear();
  at_ = 0;
  number_ = 0;
  return true;
}

DecisionReader::Line DecisionReader::read_line() {
  line_.clear();
  while (true) {
    if (at_ == block_.size()) {
      block_.resize(read_block_bytes);
      in_.read(block_.data(), static_cast<std::streamsize>(block_.size()));
      block_.resize(static_cast<std::size_t>(in_.gcount()));
      at_ = 0;
      if (block_.empty()) return Line::none;
    }
    const auto newline = block_.find('\n', at_);
    const auto end = newline == std::string::npos ? block_.size() : newline;
    line_.append(block_, at_, end - at_);
    if (line_.size() > decision_line_max_bytes) return Line::too_long;
    at_ = end;
    if (newline == std::string::npos) continue;
    ++at_;
    return Line::whole;
  }
}

Result<std::optional<DecisionRecord>> DecisionReader::next() {
  while (opened_ > 0 || open_next_file()) {
    if (!in_.is_open()) return Error{ErrorCode::io, "cannot read " + path_};
    const Line found = read_line();
    ++number_;
    if (found == Line::none) {
      if (in_.bad()) return Error{ErrorCode::io, "cannot read " + path_};
      if (!line_.empty()) torn_ = place();
      if (!open_next_file()) break;
      continue;
    }
    if (found == Line::too_long)
      return Error{ErrorCode::bad_record,
                   place() + ": longer than " + std::to_string(decision_line_max_bytes) + " bytes"};
    auto record = parse_decision_line(line_);
    if (!record) return Error{ErrorCode::bad_record, place() + ": " + record.error().message};
    return std::optional<DecisionRecord>(std::move(record).value());
  }
  return std::optional<DecisionRecord>();
}

std::string DecisionReader::place() const {
  return path_ + ": line " + std::to_string(number_);
}

}  // namespace rivulet::runtime
