#include "runtime/decision_log.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace rivulet::runtime {
namespace {

using nlohmann::json;

json facts_json(const sync::Facts& f) {
  json j = {{"rows", f.rows},
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
            {"interval",
             {{"topic", f.interval.partition.topic},
              {"partition", f.interval.partition.partition},
              {"first", {f.interval.first.offset, f.interval.first.row}},
              {"next", {f.interval.next.offset, f.interval.next.row}},
              {"trained", f.interval.rows_trained},
              {"dropped", f.interval.rows_dropped}}}};
  if ((f.flags & sync::flag_digest) != 0) j["digest"] = f.digest.hex();
  return j;
}

json plan_json(const sync::policy::RoundPlan& p) {
  json moves = json::array();
  for (const auto& m : p.next_moves) moves.push_back({m.from, m.to, m.rows});
  return {{"mode", std::string(name_of(p.mode))},
          {"reduction", std::string(name_of(p.reduction))},
          {"codec", p.codec},
          {"weights", p.weights},
          {"next_rows", p.next_rows},
          {"next_wait_ms", std::chrono::duration<double, std::milli>(p.next_wait).count()},
          {"next_whole", p.next_whole},
          {"rest", p.rest},
          {"next_moves", moves},
          {"learning_rate_factor", p.learning_rate_factor},
          {"stop", p.stop},
          {"leaving", p.leaving},
          {"why", p.why}};
}

class FileLog final : public DecisionLog {
 public:
  FileLog(std::string path, std::uint64_t bytes_max) : path_(std::move(path)), bytes_max_(bytes_max) {}
  bool open() {
    out_.open(path_, std::ios::app);
    std::error_code ignored;
    bytes_ = std::filesystem::exists(path_, ignored) ? std::filesystem::file_size(path_, ignored) : 0;
    return out_.is_open();
  }
  void write(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table,
             const sync::policy::RoundPlan& plan) override {
    if (bytes_ > bytes_max_) rotate();
    const std::string line = decision_line(view, round, table, plan);
    out_ << line << '\n';
    if (out_.fail() && !failed_)
      std::fprintf(stderr, "rivulet: cannot write %s: decisions are no longer logged\n", path_.c_str());
    failed_ = failed_ || out_.fail();
    bytes_ += line.size() + 1;
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
  for (const auto& f : table.facts) facts.push_back(facts_json(f));
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
