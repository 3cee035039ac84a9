#include "runtime/wiring/simulation_results.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <span>

#include "runtime/process/whole_file.h"
#include "sync/policy/sync_cost.h"

namespace rivulet::runtime {
namespace {

class RoundRecorder final : public DecisionLog {
 public:
  explicit RoundRecorder(ResultTables& tables) : tables_(tables) {}
  void write(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table,
             const sync::policy::RoundPlan& plan) override {
    tables_.add_round(view, round, table, plan);
  }

 private:
  ResultTables& tables_;
};

template <class... Values>
void add_line(std::string& to, fmt::format_string<Values...> form, Values&&... values) {
  fmt::format_to(std::back_inserter(to), form, std::forward<Values>(values)...);
}

std::uint64_t dropped_of(const DeviceSummary& device) {
  return std::accumulate(device.rows_dropped.begin(), device.rows_dropped.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& reason) { return sum + reason.second; });
}

std::string devices_table(const Summary& summary) {
  std::string text =
      "device,rows_consumed,rows_trained,rows_waiting,rows_dropped,batch_mean,compute_s,wait_s,sync_s,"
      "bytes_sent,bytes_received,digest\n";
  for (const DeviceSummary& d : summary.devices)
    add_line(text, "{},{},{},{},{},{},{},{},{},{},{},{}\n", d.id, d.rows_consumed, d.rows_trained,
             d.rows_waiting, dropped_of(d), d.batch_mean, d.compute_s, d.wait_s, d.sync_s, d.bytes_sent,
             d.bytes_received, d.digest);
  return text;
}

std::string summary_table(const Summary& summary, double seconds) {
  std::string text = "name,value\n";
  std::uint64_t consumed = 0;
  std::uint64_t trained = 0;
  for (const DeviceSummary& d : summary.devices) {
    consumed += d.rows_consumed;
    trained += d.rows_trained;
  }
  add_line(text, "seconds,{}\ndevices,{}\nrounds,{}\n", seconds, summary.devices.size(), summary.rounds);
  add_line(text, "rows_consumed,{}\nrows_trained,{}\nrows_per_s,{}\n", consumed, trained, summary.rows_per_s);
  add_line(text, "sync_bytes_sent,{}\nrecord_bytes_trained,{}\n", summary.sync_bytes_sent(),
           summary.record_bytes_trained());
  if (const auto ratio = summary.edge_ratio()) add_line(text, "edge_ratio,{}\n", *ratio);
  if (summary.accuracy) add_line(text, "accuracy,{}\n", *summary.accuracy);
  for (const auto& [accuracy, at] : summary.time_to_accuracy_s)
    add_line(text, "time_to_accuracy_{},{}\n", accuracy, at);
  add_line(text, "parameters_equal,{}\n", summary.parameters_equal ? 1 : 0);
  return text;
}

Status write_table(const std::string& folder, const char* name, const std::string& text) {
  return write_whole_file(folder + "/" + name, std::as_bytes(std::span(text)));
}

/// Returns "compressor,keep,collective,payload_bytes" of a round with a sum; empty fields if unknown, as in
/// the first round of a view.
std::string way_of(const std::optional<sync::policy::Schedule>& entered, const sync::policy::Decision& now) {
  using sync::policy::Mode;
  const bool exchanged = now.mode == Mode::gradients || now.mode == Mode::delta;
  if (!exchanged || (!now.way && !entered)) return ",,,";
  const sync::policy::Way& way = now.way ? *now.way : entered->way;
  return fmt::format("{},{},{},{}", way.compressor, way.keep_ratio, way.collective, way.payload_bytes);
}

/// Quotes text for CSV.
std::string quoted(const std::string& text) {
  std::string all = "\"";
  for (const char c : text) all += c == '"' ? "\"\"" : std::string(1, c);
  return all + "\"";
}

}  // namespace

std::unique_ptr<DecisionLog> ResultTables::log() {
  return std::make_unique<RoundRecorder>(*this);
}

/// All devices compute the same table; the first one writes it.
void ResultTables::add_round(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table,
                             const sync::policy::RoundPlan& plan) {
  if (view < view_ || (view == view_ && round < next_round_)) return;
  if (view != view_) entered_.reset();
  view_ = view;
  next_round_ = round + 1;
  const double now = seconds_();
  std::uint64_t rows = 0;
  std::uint64_t waiting = 0;
  double loss = 0;
  double compute = 0;
  double wait = 0;
  double sync = 0;
  for (std::size_t rank = 0; rank < table.size(); ++rank) {
    const sync::Facts& f = table.facts[rank];
    rows += f.rows;
    waiting += f.queue_rows;
    loss += f.loss_sum;
    compute = std::max(compute, double{f.compute_seconds});
    wait = std::max(wait, double{f.wait_seconds});
    sync = std::max(sync, double{f.sync_seconds});
    add_line(shares_, "{},{},{},{},{},{},{},{},{}\n", view, round, rank, f.rows, f.queue_rows, f.stream_rate,
             f.compute_seconds, f.wait_seconds, f.sync_seconds);
  }
  add_line(rounds_, "{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", now, view, round, table.size(),
           sync::policy::name_of(plan.now.mode), rows, table.facts[0].agreed_rows, waiting,
           rows > 0 ? loss / static_cast<double>(rows) : 0.0, compute, wait, sync, way_of(entered_, plan.now),
           quoted(plan.why));
  entered_ = plan.next;
}

void ResultTables::add_accuracy(double seconds, double accuracy) {
  add_line(accuracy_, "{},{}\n", seconds, accuracy);
}

Status ResultTables::prepare(const std::string& folder) {
  std::error_code trouble;
  std::filesystem::create_directories(folder, trouble);
  if (!trouble && ::access(folder.c_str(), W_OK) != 0) trouble = {errno, std::generic_category()};
  if (!trouble && !std::filesystem::is_directory(folder))
    trouble = std::make_error_code(std::errc::not_a_directory);
  if (trouble) return Error{ErrorCode::unavailable, fmt::format("--csv {}: {}", folder, trouble.message())};
  return ok();
}

Status ResultTables::write(const std::string& folder, const Summary& summary, double seconds) const {
  const std::pair<const char*, std::string> tables[] = {
      {"rounds.csv",
       "second,view,round,devices,mode,rows,rows_before,rows_waiting,loss,compute_s,wait_s,sync_s,"
       "compressor,keep,collective,payload_bytes,why\n" +
           rounds_},
      {"shares.csv", "view,round,rank,rows,rows_waiting,stream_rate,compute_s,wait_s,sync_s\n" + shares_},
      {"accuracy.csv", "second,accuracy\n" + accuracy_},
      {"devices.csv", devices_table(summary)},
      {"summary.csv", summary_table(summary, seconds)}};
  for (const auto& [name, text] : tables)
    if (auto written = write_table(folder, name, text); !written) return written;
  return ok();
}

}  // namespace rivulet::runtime
