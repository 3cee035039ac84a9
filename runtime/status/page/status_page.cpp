#include "runtime/status/page/status_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "rivulet_status_page.h"
#include "runtime/status/page/html.h"
#include "runtime/status/page/node_report.h"

namespace rivulet::runtime {
namespace {

using namespace html;

std::string header(const NodeReport& r) {
  return fmt::format("<header><h1 id=\"id\">{}</h1><span class=\"soft\">job {}, model {}</span></header>\n",
                     escaped(r.id), escaped(r.job), escaped(r.model));
}

/// The state of the device in one sentence.
std::string state_line(const NodeReport& r) {
  const bool good = trains(r);
  std::string words = escaped(state_and_phrase(r));
  if (good) {
    words = fmt::format("training: {} device{} in view {}, {} rounds applied", *r.world,
                        *r.world == 1 ? "" : "s", r.view.value_or(0), count(r.steps));
    if (!r.ready_last.empty()) words += fmt::format("; slowest: {}", escaped(r.ready_last));
  }
  const bool bad = r.state == "failed" || !r.trouble.empty();
  const char* look = bad ? " bad" : good ? " good" : "";
  return fmt::format("<p id=\"state\" class=\"state{}\">{}</p>\n", look, words);
}

std::string change_line(const NodeReport& r) {
  const auto words = last_change(r);
  return words.empty() ? ""
                       : fmt::format("<p id=\"change\" class=\"soft\">last change: {}</p>\n", escaped(words));
}

/// Findings that leave the device ready.
std::string impaired_lines(const NodeReport& r) {
  std::string out;
  for (const auto& phrase : r.impaired)
    out += fmt::format("<p class=\"state impaired\">{}</p>\n", escaped(phrase));
  return out;
}

/// Scores on this device's own rows, which the group's loss and accuracy may hide.
void add_own(const NodeReport::Own& own, Tiles& out) {
  if (own.rows.value_or(0) == 0) return;
  out.add("own_loss", "loss, own rows", decimal(own.loss, 4));
  if (own.accuracy) out.add("own_accuracy", "accuracy, own rows", percent(own.accuracy));
  if (own.largest_share)
    out.add("largest_class", ("baseline: always " + escaped(own.largest_class)).c_str(),
            percent(own.largest_share));
  if (own.mean_absolute_error) {
    out.add("mean_absolute_error", "mean absolute error, own rows", number(own.mean_absolute_error));
    out.add("r2", "R², own rows", decimal(own.r2, 3));
  }
}

std::string learning_tiles(const NodeReport& r) {
  Tiles out("Learning");
  const Cells cells{r};
  out.add_series(cells.loss());
  if (r.held_out_accuracy) out.add_series(cells.held_out_accuracy());
  if (r.held_out_accuracy && r.accuracy)
    out.add(cells.accuracy());  // next to the accuracy on own rows
  else if (r.accuracy)          // none for a regression
    out.add_series(cells.accuracy());
  add_own(r.own, out);
  out.add(cells.rows_trained());
  out.add(cells.group_rows());
  return out.html();
}

std::string stream_tiles(const NodeReport& r) {
  Tiles out("Stream");
  const Cells cells{r};
  out.add_series(cells.stream_rate());
  out.add_series(cells.rows_waiting());
  out.add(cells.lag_records());
  out.add("rows_refused", "rows dropped", grouped(std::to_string(refused_rows(r))));
  return out.html();
}

std::string sync_tiles(const NodeReport& r) {
  Tiles out("Synchronization");
  const Cells cells{r};
  out.add(cells.steps());
  out.add_series(cells.batch_rows());
  if (const auto when = sync_interval_of(r); !when.empty()) out.add("sync_when", "schedule", when);
  if (const auto share = sync_share_of(r); !share.empty()) out.add("sync_share", "contribution", share);
  return out.html();
}

std::string bytes_tiles(const NodeReport& r) {
  Tiles out("Bytes");
  const Cells cells{r};
  out.add(cells.bytes_sent());
  out.add(cells.bytes_received());
  out.add(cells.record_bytes_trained());
  out.add("edge_ratio", "sent, share of the rows' bytes", percent(edge_ratio(r)));
  return out.html();
}

std::string tiles(const NodeReport& r) {
  return "<div class=\"tiles\">" + learning_tiles(r) + stream_tiles(r) + sync_tiles(r) + bytes_tiles(r) +
         "</div>\n";
}

std::string members(const NodeReport& r) {
  if (r.members.empty()) return "";
  Table table("members", {{"device", true},
                          {"rank", false},
                          {"rows/s", false},
                          {"waiting", false},
                          {"rows", false},
                          {"weight", false},
                          {"awaiting rows", false},
                          {"computing", false},
                          {"awaiting slowest", false},
                          {"rows in next step", false}});
  int rank = 0;
  for (const auto& m : r.members) {
    const bool own = m.id == r.id;
    const bool slowest = !m.id.empty() && m.id == r.ready_last;
    table.row(
        {escaped(m.id) + (own ? " (this device)" : ""), std::to_string(rank++), decimal(m.rows_per_s, 1),
         count(m.rows_waiting), count(m.rows), percent(m.weight), milliseconds(m.wait_s),
         milliseconds(m.compute_s), milliseconds(m.ready_before_last_s), count(m.next_rows)},
        slowest ? "slowest"
        : own   ? "own"
                : "");
  }
  return "<h2>Group in the last round</h2>\n" + table.html();
}

std::string story(const NodeReport& r) {
  if (r.detail.empty()) return "";
  std::string first;
  std::string rest;
  for (std::size_t i = 0; i < r.detail.size(); ++i)
    (i < main_sentences ? first : rest) += "<li>" + escaped(r.detail[i]) + "</li>";
  return fmt::format(
      "<h2>Explanation of round {} of view {}</h2>\n<ul id=\"story\">{}</ul>\n"
      "<details id=\"story-rest\"{}><summary>Details</summary><ul>{}</ul></details>\n",
      count(r.reported_round), count(r.group_view), first, rest.empty() ? " hidden" : "", rest);
}

std::string rounds(const NodeReport& r) {
  if (r.last_rounds.empty()) return "";
  Table table("rounds",
              {{"step", false}, {"rows", false}, {"outcome", true}, {"plan", true}, {"slowest", true}});
  for (const auto& one : r.last_rounds)
    table.row(
        {count(one.step), count(one.rows), escaped(one.mode), escaped(one.why), escaped(one.ready_last)});
  return "<details id=\"last-rounds\"><summary>Last rounds, newest first</summary>\n" + table.html() +
         "</details>\n";
}

std::string classes(const NodeReport& r) {
  if (r.own.classes.empty()) return "";
  Table table("classes", {{"class", true}, {"rows", false}, {"recall", false}, {"precision", false}});
  for (const auto& c : r.own.classes)
    table.row({escaped(c.name), count(c.rows), percent(c.recall), percent(c.precision)});
  return fmt::format("<h2>Classes of this device's last {} rows, before training</h2>\n", count(r.own.rows)) +
         table.html();
}

std::string partitions(const NodeReport& r) {
  if (r.partitions.empty()) return "";
  Table table("partitions", {{"topic", true},
                             {"partition", false},
                             {"state", true},
                             {"next offset", false},
                             {"end of log", false},
                             {"skipped", false},
                             {"reason", true}});
  for (const auto& p : r.partitions)
    table.row({escaped(p.topic), count(p.partition), escaped(p.state), count(p.next_offset),
               count(p.high_watermark), count(p.skipped), escaped(p.reason)},
              p.state == "stopped" || p.state == "unreachable" ? "slowest" : "");
  return "<h2>Partitions</h2>\n" + table.html();
}

std::string refusals(const NodeReport& r) {
  if (r.rows_dropped.empty()) return "";
  Table table("refusals", {{"reason", true}, {"rows", false}});
  for (const auto& [reason, rows] : r.rows_dropped)
    table.row({escaped(reason), grouped(std::to_string(rows))});
  return "<h2>Dropped rows</h2>\n" + table.html();
}

std::string costs(const NodeReport& r) {
  const Cells cells{r};
  std::vector<std::pair<std::string, bool>> columns;
  std::vector<std::string> row;
  for (const Cell& cell : {cells.compute_s(), cells.wait_s(), cells.sync_s(), cells.digests_compared(),
                           cells.digests_different()}) {
    columns.emplace_back(cell.caption, false);
    row.push_back(cell.shown);
  }
  columns.emplace_back("digest of the agreed state", true);
  row.push_back("<code>" + escaped(r.digest) + "</code>");
  Table table("costs", columns);
  table.row(row);
  return "<h2>Time and agreed state</h2>\n" + table.html();
}

/// Events that the charts mark with a line. The history has one sample per second.
std::string marks(const History& history) {
  std::string out;
  for (const History::Mark& mark : history.marks())
    out += fmt::format("<li data-ago=\"{0}\">{0}&nbsp;s ago: <span>{1}</span></li>", mark.looks_ago,
                       escaped(mark.phrase));
  return out.empty() ? "" : "<ul id=\"marks\">" + out + "</ul>\n";
}

/// The part above the charts: state and values.
std::string live_part(const std::optional<NodeReport>& said, const History* history) {
  if (!said) return "<p class=\"state bad\">the status of this device cannot be read</p>";
  return header(*said) + state_line(*said) + change_line(*said) + impaired_lines(*said) + tiles(*said) +
         (history == nullptr ? "" : marks(*history));
}

/// The part below the charts: explanations and tables.
std::string tables_part(const std::optional<NodeReport>& said) {
  if (!said) return "";
  const NodeReport& r = *said;
  return classes(r) + members(r) + story(r) + refusals(r) + partitions(r) + rounds(r) + costs(r);
}

/// The history that the charts start with, under the same names as the tiles' series.
std::string past_part(const History& history) {
  using Series = History::Series;
  constexpr std::pair<Series, std::string_view> all[] = {
      {Series::stream_rate, Captions::stream_rate}, {Series::rows_waiting, Captions::rows_waiting},
      {Series::batch_rows, Captions::batch_rows},   {Series::loss, Captions::loss},
      {Series::accuracy, Captions::accuracy},       {Series::held_out, Captions::held_out_accuracy}};
  std::string out;
  for (const auto& [series, name] : all) {
    std::string numbers;
    for (const float value : history.read(series))
      if (std::isfinite(value)) numbers += fmt::format("{}{:.5g}", numbers.empty() ? "" : " ", value);
    out += fmt::format("<data data-series=\"{}\" value=\"{}\"></data>", name, numbers);
  }
  return out;
}

/// Replaces {{name}} in `text` by its value. Inserted values are not expanded again.
std::string filled(std::string_view text,
                   const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string out;
  while (!text.empty()) {
    const auto open = text.find("{{");
    out += text.substr(0, open);
    if (open == std::string_view::npos) break;
    const auto close = text.find("}}", open);
    const auto name = text.substr(open + 2, close - open - 2);
    const auto found = std::ranges::find(values, name, &std::pair<std::string_view, std::string>::first);
    out += found == values.end() ? std::string() : found->second;
    text.remove_prefix(close + 2);
  }
  return out;
}

}  // namespace

std::string status_page(const std::string& status_json, const std::string& group_json,
                        const std::string& nonce, const History* history) {
  const auto said = read_node_report(status_json, group_json);
  return filled(rivulet_status_page, {{"title", escaped(said ? said->id : "") + " · rivulet"},
                                      {"nonce", escaped(nonce)},
                                      {"live", live_part(said, history)},
                                      {"tables", tables_part(said)},
                                      {"past", history == nullptr ? "" : past_part(*history)}});
}

}  // namespace rivulet::runtime
