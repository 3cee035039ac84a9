#include "runtime/decision_log.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

namespace rivulet::runtime {
namespace {

using nlohmann::json;

json interval_json(const RowInterval& i) {
  return {{"topic", i.partition.topic},
          {"partition", i.partition.partition},
          {"first", {i.first.offset, i.first.row}},
          {"next", {i.next.offset, i.next.row}},
          {"trained", i.rows_trained},
          {"dropped", i.rows_dropped},
          {"shared", i.rows_shared},
          {"holes", i.holes}};
}

json facts_json(const sync::Facts& f) {
  json j = {{"step", f.step},
            {"agreed_rows", f.agreed_rows},
            {"stop_at_step", f.stop_at_step},
            {"stop_at_rows", f.stop_at_rows},
            {"rows", f.rows},
            {"rows_since_sync", f.rows_since_sync},
            {"flags", f.flags},
            {"queue_rows", f.queue_rows},
            {"stream_rate", f.stream_rate},
            {"compute_s", f.compute_seconds},
            {"wait_s", f.wait_seconds},
            {"sync_s", f.sync_seconds},
            {"loss_sum", f.loss_sum},
            {"correct", f.correct},
            {"gradient_norm2", f.gradient_norm2},
            {"rows_dropped", f.rows_dropped},
            {"rows_max", f.rows_max},
            {"interval", interval_json(f.interval)}};
  if ((f.flags & sync::flag_digest) != 0) j["digest"] = f.digest.hex();
  return j;
}

json plan_json(const sync::policy::RoundPlan& p) {
  json moves = json::array();
  for (const auto& m : p.next_moves) moves.push_back({m.from, m.to, m.rows});
  return {{"mode", std::string(name_of(p.mode))},
          {"reduction", std::string(name_of(p.reduction))},
          {"aggregation", p.aggregation},
          {"codec", p.codec},
          {"keep_ratio", p.keep_ratio},
          {"payload_max_bytes", p.payload_max_bytes},
          {"weights", p.weights},
          {"next_rows", p.next_rows},
          {"next_wait_ns", p.next_wait.count()},
          {"next_whole", p.next_whole},
          {"rest", p.rest},
          {"next_moves", moves},
          {"learning_rate_factor", p.learning_rate_factor},
          {"freeze", p.freeze},
          {"checkpoint", p.checkpoint},
          {"stop", p.stop},
          {"leaving", p.leaving},
          {"why", p.why},
          {"hash", sync::policy::hash_of(p)}};
}

/// What a process was writing when it was killed would spoil the line after it: the file ends where its last
/// whole line does.
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
  FileLog(std::string path, std::uint64_t bytes_max) : path_(std::move(path)), bytes_max_(bytes_max) {}
  bool open() {
    if (cut_torn_line(path_)) return false;
    out_.open(path_, std::ios::app);
    std::error_code ignored;
    bytes_ = std::filesystem::exists(path_, ignored) ? std::filesystem::file_size(path_, ignored) : 0;
    return out_.is_open();
  }
  void write(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table,
             const sync::policy::RoundPlan& plan) override {
    if (bytes_ > bytes_max_) rotate();
    const std::string line = decision_line(view, round, table, plan) + '\n';
    out_ << line << std::flush;  // it must outlive a process that is killed
    if (out_.fail() && !failed_)
      std::fprintf(stderr, "rivulet: cannot write %s: decisions are no longer logged\n", path_.c_str());
    failed_ = failed_ || out_.fail();
    bytes_ += line.size();
  }

 private:
  void rotate() {
    out_.close();
    std::error_code ignored;
    std::filesystem::rename(path_, path_ + ".1", ignored);
    out_.open(path_, std::ios::trunc);
    bytes_ = 0;
  }
  const std::string path_;
  const std::uint64_t bytes_max_;
  std::ofstream out_;
  std::uint64_t bytes_ = 0;
  bool failed_ = false;
};

class NullLog final : public DecisionLog {
 public:
  void write(std::uint64_t, std::uint64_t, const sync::FactsTable&, const sync::policy::RoundPlan&) override {
  }
};

}  // namespace

std::string decision_line(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table,
                          const sync::policy::RoundPlan& plan) {
  json facts = json::array();
  for (std::size_t rank = 0; rank < table.facts.size(); ++rank) {
    facts.push_back(facts_json(table.facts[rank]));
    for (const auto& more : table.sections[rank].more_intervals)
      facts.back()["more_intervals"].push_back(interval_json(more));
  }
  const std::uint64_t step = table.facts.empty() ? 0 : table.facts.front().step;
  return json{{"view", view}, {"round", round}, {"step", step}, {"facts", facts}, {"plan", plan_json(plan)}}
      .dump();
}

Result<std::unique_ptr<DecisionLog>> open_decision_log(const std::string& path, std::uint64_t bytes_max) {
  auto log = std::make_unique<FileLog>(path, bytes_max);
  if (!log->open()) return Error{ErrorCode::io, "cannot write the decision log " + path};
  return std::unique_ptr<DecisionLog>(std::move(log));
}

std::unique_ptr<DecisionLog> make_null_decision_log() {
  return std::make_unique<NullLog>();
}

}  // namespace rivulet::runtime
