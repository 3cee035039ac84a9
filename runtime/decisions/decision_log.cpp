#include "runtime/decisions/decision_log.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "runtime/decisions/decision_files.h"

namespace rivulet::runtime {
namespace {

/// Truncates the file after its last complete line. An incomplete line would spoil the next one.
std::error_code cut_torn_line(const std::string& path) {
  constexpr std::uint64_t block_max = 64UL * 1024;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return {};
  const std::uint64_t size = std::filesystem::file_size(path, error);
  if (error) return error;
  std::ifstream in(path, std::ios::binary);
  std::uint64_t end = size;
  while (end > 0) {
    std::string block(std::min(end, block_max), '\0');
    in.seekg(static_cast<std::streamoff>(end - block.size()));
    if (!in.read(block.data(), static_cast<std::streamsize>(block.size())))
      return std::make_error_code(std::errc::io_error);
    end -= block.size();
    const auto newline = block.rfind('\n');
    if (newline == std::string::npos) continue;
    end += newline + 1;
    break;
  }
  if (end < size) std::filesystem::resize_file(path, end, error);
  return error;
}

class FileLog final : public DecisionLog {
 public:
  FileLog(std::string path, std::uint64_t bytes_max, Recorded recorded)
      : path_(std::move(path)), bytes_max_(bytes_max), recorded_(recorded) {}
  bool open() {
    if (cut_torn_line(path_)) return false;
    out_.open(path_, std::ios::app);
    std::error_code ignored;
    bytes_ = std::filesystem::exists(path_, ignored) ? std::filesystem::file_size(path_, ignored) : 0;
    drop_oldest();  // the limit may have changed since the last run
    return out_.is_open();
  }
  void enter_view(const ViewRecord& view) override {
    if (is_full()) rotate();
    view_ = view;
    append(decision_line(view_));
  }
  void write(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table,
             const sync::policy::RoundPlan& plan) override {
    if (recorded_ == Recorded::rounds) append(decision_line(view, round, table, plan));
  }
  void finish_round(const sync::policy::PolicyState& next) override {
    if (recorded_ != Recorded::rounds || !is_full()) return;
    rotate();
    view_.state = next;
    append(decision_line(view_));
  }

 private:
  void append(std::string line) {
    line += '\n';
    out_ << line << std::flush;  // survives a killed process
    if (out_.fail()) give_up();
    bytes_ += line.size();
  }
  void give_up() {
    if (!failed_)
      std::fprintf(stderr, "rivulet: cannot write %s: decisions are no longer logged\n", path_.c_str());
    failed_ = true;
    out_.setstate(std::ios::badbit);
  }
  [[nodiscard]] bool is_full() const { return !failed_ && bytes_ >= file_bytes(); }
  [[nodiscard]] std::uint64_t file_bytes() const { return bytes_max_ / files_max; }
  void rotate() {
    out_.close();
    const auto files = decision_files(path_);
    const std::uint64_t number = files.empty() ? 1 : files.back().number;
    std::error_code error;
    std::filesystem::rename(path_, path_ + "." + std::to_string(number), error);
    if (error) return give_up();  // keeps the file, but no longer appends
    drop_oldest();
    out_.open(path_, std::ios::trunc);
    bytes_ = 0;
  }
  /// Deletes old files until there is room for one more full file.
  void drop_oldest() {
    auto files = decision_files(path_);
    std::erase_if(files, [this](const DecisionFile& file) { return file.path == path_; });
    std::uint64_t all = 0;
    for (const auto& file : files) all += file.bytes;
    for (const auto& file : files) {
      if (all + file_bytes() <= bytes_max_) return;
      std::error_code error;
      if (std::filesystem::remove(file.path, error)) all -= file.bytes;
    }
  }
  static constexpr std::uint64_t files_max = 8;

  const std::string path_;
  const std::uint64_t bytes_max_;
  const Recorded recorded_;
  std::ofstream out_;
  std::uint64_t bytes_ = 0;
  bool failed_ = false;
  ViewRecord view_;  ///< the current view
};

class NullLog final : public DecisionLog {
 public:
  void write(std::uint64_t, std::uint64_t, const sync::FactsTable&, const sync::policy::RoundPlan&) override {
  }
};

}  // namespace

Result<std::unique_ptr<DecisionLog>> open_decision_log(const std::string& path, std::uint64_t bytes_max,
                                                       Recorded recorded) {
  auto log = std::make_unique<FileLog>(path, bytes_max, recorded);
  if (!log->open()) return Error{ErrorCode::io, "cannot write the decision log " + path};
  return std::unique_ptr<DecisionLog>(std::move(log));
}

std::unique_ptr<DecisionLog> make_null_decision_log() {
  return std::make_unique<NullLog>();
}

}  // namespace rivulet::runtime
