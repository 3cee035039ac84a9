#include "runtime/cli/node_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/printable.h"
#include "runtime/cli/text.h"

namespace rivulet::runtime::cli {
namespace {

std::string rows(NodeReport::Whole value) {
  return grouped(static_cast<std::uint64_t>(std::max<std::int64_t>(value.value_or(0), 0)));
}

std::string seconds(NodeReport::Number value) {
  return human_seconds(value.value_or(0));
}

std::string share(NodeReport::Number value) {
  return value ? fmt::format("{:.1f} %", 100 * *value) : "not measured";
}

std::string loss_of(const NodeReport& r) {
  return r.loss ? fmt::format("{:.4f}", *r.loss) : "-";
}

/// Omits accuracy for regression models and before the first training step.
std::string learning(const NodeReport& r) {
  std::string out = "  learning  loss " + loss_of(r);
  if (r.accuracy || r.held_out_accuracy)
    out += fmt::format(", accuracy (prequential) {}, held out {}", share(r.accuracy),
                       share(r.held_out_accuracy));
  return out;
}

std::string number(NodeReport::Number value) {
  return value ? fmt::format("{:.4g}", *value) : "-";
}

/// Renders local scores: the group's loss and accuracy may hide a poor result on this device.
std::string own_rows(const NodeReport::Own& own) {
  std::string out = "  own rows  loss " + (own.loss ? fmt::format("{:.4f}", *own.loss) : "-");
  if (own.accuracy) out += ", accuracy (prequential) " + share(own.accuracy);
  if (own.largest_share)
    out += fmt::format("; baseline (always \"{}\") {}", own.largest_class, share(own.largest_share));
  if (own.mean_absolute_error)
    out += fmt::format(", mean absolute error {}, R2 {}", number(own.mean_absolute_error), number(own.r2));
  return out;
}

/// Lowest recall first.
void add_classes(const NodeReport::Own& own, std::vector<std::string>& lines) {
  constexpr std::size_t shown = 10;
  auto classes = own.classes;
  std::ranges::stable_sort(classes, {}, [](const NodeReport::Class& c) { return c.recall.value_or(2); });
  for (std::size_t i = 0; i < std::min(classes.size(), shown); ++i) {
    const auto& c = classes[i];
    lines.push_back(fmt::format("  {:<9} {}: recall {}, precision {}, {} rows", i == 0 ? "classes" : "",
                                c.name, share_or_dash(c.recall), share_or_dash(c.precision), rows(c.rows)));
  }
  if (classes.size() > shown) lines.push_back(fmt::format("  {:<9} and {} more", "", classes.size() - shown));
}

std::string transferred(NodeReport::Whole value) {
  return human_bytes(static_cast<double>(value.value_or(0)));
}

std::string refusals(const NodeReport& r) {
  std::string out;
  for (const auto& [reason, refused] : r.rows_dropped)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", grouped(refused), reason);
  return out;
}

/// Returns "training, 4 devices in view 3; slowest: c", or the state and its phrase.
std::string state_of(const NodeReport& r) {
  const auto world = r.world.value_or(0);
  if (!r.phrase.empty() || !r.trouble.empty() || world == 0) return state_and_phrase(r);
  return fmt::format("{}, {} device{} in view {}{}", trains(r) ? "training" : r.state, world,
                     world == 1 ? "" : "s", r.view.value_or(0),
                     r.ready_last.empty() ? "" : "; slowest: " + r.ready_last);
}

/// ", 4.6 % of the rows' bytes (12 MB)".
std::string of_rows_bytes(const NodeReport& r) {
  const auto ratio = edge_ratio(r);
  return ratio ? fmt::format(", {} of the rows' bytes ({})", human_share(*ratio),
                             transferred(r.record_bytes_trained))
               : "";
}

/// Problems that need attention.
void add_troubles(const NodeReport& r, std::vector<std::string>& lines) {
  if (!r.rows_dropped.empty()) lines.push_back("  dropped   " + refusals(r));
  for (const auto& p : r.partitions)
    if (p.state == "stopped" || !p.reason.empty())
      lines.push_back(fmt::format("  {:<9} {} partition {}: {}",
                                  p.state == "stopped"       ? "STOPPED"
                                  : p.state == "unreachable" ? "SILENT"
                                                             : "blocked",
                                  p.topic, p.partition.value_or(0), p.reason));
  for (const auto& phrase : r.impaired) lines.push_back("  IMPAIRED  " + phrase);
}

void add_change(const NodeReport& r, std::vector<std::string>& lines) {
  if (const auto words = last_change(r); !words.empty()) lines.push_back("  change    " + words);
}

void add_own(const NodeReport& r, std::vector<std::string>& lines) {
  lines.push_back(fmt::format("{} (job {}, model {}): {}", r.id, r.job, r.model, state_of(r)));
  lines.push_back(fmt::format("  stream    {:.1f} rows/s arriving, {} rows waiting, {} records behind",
                              r.stream_rate.value_or(0), rows(r.rows_waiting),
                              r.lag_records ? rows(r.lag_records) : "unknown"));
  lines.push_back(fmt::format("  trained   {} rows here, {} by the group, {} rounds applied, batch {}",
                              rows(r.rows_trained), rows(r.group_rows), rows(r.steps),
                              r.batch_rows.value_or(0)));
  lines.push_back(learning(r));
  if (r.own.rows.value_or(0) > 0) lines.push_back(own_rows(r.own));
  add_classes(r.own, lines);
  lines.push_back(
      fmt::format("  time      {} computing, {} waiting for rows, {} waiting for peers and exchanging",
                  seconds(r.compute_s), seconds(r.wait_s), seconds(r.sync_s)));
  lines.push_back(fmt::format("  peers     {} sent{}, {} received", transferred(r.bytes_sent),
                              of_rows_bytes(r), transferred(r.bytes_received)));
  if (const auto words = sync_of(r); !words.empty()) lines.push_back("  sync      " + words);
  add_change(r, lines);
  add_troubles(r, lines);
}

void add_members(const NodeReport& r, std::vector<std::string>& lines) {
  if (r.members.empty()) return;
  lines.push_back(fmt::format("  {:<16} {:>8} {:>8} {:>6} {:>7} {:>14} {:>10} {:>16}", "device", "rows/s",
                              "waiting", "rows", "weight", "awaiting rows", "computing", "awaiting slowest"));
  for (const auto& m : r.members)
    lines.push_back(fmt::format("  {:<16} {:>8.1f} {:>8} {:>6} {:>5.1f} % {:>14} {:>10} {:>16}", m.id,
                                m.rows_per_s.value_or(0), rows(m.rows_waiting), m.rows.value_or(0),
                                100 * m.weight.value_or(0), seconds(m.wait_s), seconds(m.compute_s),
                                m.id == r.ready_last ? "slowest" : seconds(m.ready_before_last_s)));
}

/// The losses on a column grid from first to last, stretched if there are few.
std::vector<std::optional<double>> columns_of(const std::vector<double>& losses, int columns) {
  std::vector<std::optional<double>> values(static_cast<std::size_t>(columns));
  for (std::size_t c = 0; c < values.size(); ++c) values[c] = losses[c * losses.size() / values.size()];
  return values;
}

void add_chart(const NodeReport& r, const LossCourse& course, const ViewStyle& style,
               std::vector<std::string>& lines) {
  constexpr int height = 6;
  if (course.losses.empty()) return;
  const int columns = std::clamp(style.width - 14, 8, 80);
  const double high = std::max(0.0, *std::ranges::max_element(course.losses));
  const double low = std::min(0.0, *std::ranges::min_element(course.losses));
  const auto drawn =
      area_chart(columns_of(course.losses, columns), low, high > low ? high : low + 1, height, style.unicode);
  lines.push_back(learning(r));
  for (int i = 0; i < height; ++i) {
    const std::string label = i == 0            ? fmt::format("{:.3g}", high)
                              : i + 1 == height ? fmt::format("{:.3g}", low)
                                                : "";
    const auto& line = drawn[static_cast<std::size_t>(i)];
    lines.push_back(fmt::format("  {:>8} {}{}", label, style.unicode ? "│" : "|",
                                style.colour ? "\x1b[36m" + line + "\x1b[0m" : line));
  }
  const std::string since = human_seconds(course.seconds) + " ago";
  const int left = columns - static_cast<int>(since.size());
  lines.push_back(fmt::format("{:12}{}{:>{}}", "", since, "now", std::max(left, 4)));
}

}  // namespace

std::vector<std::string> render_report(const NodeReport& report, int width) {
  std::vector<std::string> lines;
  add_own(report, lines);
  add_members(report, lines);
  for (const auto& sentence : report.detail) lines.push_back("  " + sentence);
  // Escapes whole lines: an id, phrase, reason or sentence may contain cursor control.
  for (auto& line : lines) line = clipped(printable(line), width);
  return lines;
}

std::vector<std::string> render_top(const NodeReport& report, const LossCourse& course,
                                    const ViewStyle& style) {
  std::vector<std::string> lines{
      fmt::format("{} (job {}, model {}): {}", report.id, report.job, report.model, state_of(report))};
  add_members(report, lines);
  std::vector<std::string> below;
  if (!report.detail.empty()) below.push_back("  " + report.detail.front());
  add_change(report, below);
  add_troubles(report, below);
  for (auto* part : {&lines, &below})
    for (auto& line : *part) line = clipped(printable(line), style.width);
  add_chart(report, course, style, lines);  // numbers only, coloured
  lines.insert(lines.end(), below.begin(), below.end());
  return lines;
}

std::string render_report_line(const NodeReport& r) {
  return printable(fmt::format(
      "{}: {}  | {:.1f} rows/s, waiting {}, batch {}, trained {}, loss {}, rounds {}, dropped {}", r.id,
      state_of(r), r.stream_rate.value_or(0), r.rows_waiting.value_or(0), r.batch_rows.value_or(0),
      r.rows_trained.value_or(0), loss_of(r), r.steps.value_or(0), refused_rows(r)));
}

}  // namespace rivulet::runtime::cli
