#include "runtime/decisions/decision_reader.h"

#include <algorithm>

#include "runtime/decisions/decision_files.h"

namespace rivulet::runtime {
namespace {

constexpr std::size_t read_block_bytes = std::size_t{64} << 10;

}  // namespace

Result<DecisionReader> DecisionReader::open(const std::string& path) {
  const auto found = decision_files(path);
  if (found.empty())
    return Error{
        ErrorCode::io,
        "no decision log at " + path +
            " (a device writes it to decisions.jsonl in its device.data_dir, unless log.decisions is off)"};
  std::vector<File> files;
  files.reserve(found.size());
  for (const auto& file : found)
    files.push_back({file.number, file.path, std::ifstream(file.path, std::ios::binary), file.bytes});
  return DecisionReader(std::move(files), missing_decision_files(path, found));
}

bool DecisionReader::open_next_file() {
  if (opened_ == files_.size()) return false;
  if (opened_ > 0 && files_[opened_].number != files_[opened_ - 1].number + 1) behind_gap_ = true;
  if (opened_ > 0) files_[opened_ - 1].in.close();
  ++opened_;
  block_.clear();
  at_ = 0;
  number_ = 0;
  return true;
}

DecisionReader::Line DecisionReader::read_line() {
  line_.clear();
  while (true) {
    if (at_ == block_.size()) {
      auto& [number, path, in, left] = files_[opened_ - 1];
      block_.resize(std::min<std::uint64_t>(read_block_bytes, left));
      in.read(block_.data(), static_cast<std::streamsize>(block_.size()));
      block_.resize(static_cast<std::size_t>(in.gcount()));
      left -= block_.size();
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
  behind_gap_ = false;
  while (opened_ > 0 || open_next_file()) {
    const File& file = files_[opened_ - 1];
    if (!file.in.is_open()) return Error{ErrorCode::io, "cannot read " + file.path};
    const Line found = read_line();
    ++number_;
    if (found == Line::none) {
      if (file.in.bad()) return Error{ErrorCode::io, "cannot read " + file.path};
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
  return files_[opened_ - 1].path + ": line " + std::to_string(number_);
}

}  // namespace rivulet::runtime
