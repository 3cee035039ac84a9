#include "runtime/cli/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <ranges>

#include "core/printable.h"
#include "runtime/cli/text.h"

namespace rivulet::runtime::cli {
namespace {

std::string device_row(const DeviceSummary& d) {
  std::uint64_t dropped = 0;
  for (const auto& [reason, rows] : d.rows_dropped) dropped += rows;
  return fmt::format("  {:<12} {:>10} {:>8} {:>9} {:>8.1f} {:>10} {:>10} {:>10} {:>10} {:>9}", d.id,
                     grouped(d.rows_trained), grouped(d.rows_waiting), fmt::format("{:.0f}/s", d.stream_rate),
                     d.batch_mean, human_seconds(d.compute_s), human_seconds(d.sync_s),
                     human_bytes(static_cast<double>(d.bytes_sent)),
                     human_bytes(static_cast<double>(d.bytes_received)), grouped(dropped));
}

void print_drops(const Summary& summary, std::ostream& out) {
  for (const auto& d : summary.devices) {
    for (const auto& [reason, rows] : d.rows_dropped) {
      if (rows > 0) out << fmt::format("  {} dropped {} rows: {}\n", d.id, grouped(rows), reason);
    }
  }
}

void print_restarts(const Summary& summary, std::ostream& out) {
  for (const auto& d : summary.devices) {
    const auto times = d.restarts.value_or(0);
    if (times == 0) continue;
    out << fmt::format("  {} was restarted {}; its figures count from the last restart\n", d.id,
                       times == 1 ? "once" : fmt::format("{} times", times));
  }
}

std::string human(std::uint64_t bytes) {
  return human_bytes(static_cast<double>(bytes));
}

std::string equality(const Summary& summary) {
  if (!summary.parameters_equal) return "PARAMETERS DIFFER BETWEEN DEVICES";
  if (summary.digests_compared == 0) return "no digests were compared";
  return fmt::format("all devices have identical parameters ({} digests compared)",
                     grouped(summary.digests_compared));
}

/// Lowest recall first.
void print_classes(const OwnScores& own, std::ostream& out) {
  constexpr std::size_t shown = 10;
  std::vector<std::pair<ClassCounts, std::string>> classes;
  for (std::size_t c = 0; c < own.classes.size(); ++c)
    if (own.classes[c].rows + own.classes[c].predicted > 0)
      classes.emplace_back(own.classes[c], printable(own.names[c]));
  std::ranges::stable_sort(classes, {}, [](const auto& c) { return c.first.recall().value_or(2); });
  for (const auto& [counts, name] : classes | std::views::take(shown))
    out << fmt::format("    {}: recall {}, precision {}, {} rows\n", name, share_or_dash(counts.recall()),
                       share_or_dash(counts.precision()), grouped(counts.rows));
  if (classes.size() > shown) out << fmt::format("    and {} more\n", classes.size() - shown);
}

/// Details that the mean accuracy hides.
void print_last_rows(const OwnScores& own, std::ostream& out) {
  if (own.classes.empty() && !own.mean_absolute_error) return;
  out << fmt::format("  last {} rows, before training:", grouped(own.rows));
  if (own.accuracy) out << fmt::format(" accuracy {}", share_or_dash(own.accuracy));
  if (own.largest_share)
    out << fmt::format("; baseline (always \"{}\") {}", printable(own.largest_class),
                       share_or_dash(own.largest_share));
  if (own.mean_absolute_error) out << fmt::format(" mean absolute error {:.4g}", *own.mean_absolute_error);
  if (own.r2) out << fmt::format(", R2 {:.3f}", *own.r2);
  out << '\n';
  print_classes(own, out);
}

}  // namespace

std::string sync_cost(const Summary& summary) {
  const auto ratio = summary.edge_ratio();
  if (!ratio) return {};
  return fmt::format("{} sent, {} of the rows' bytes ({})", human(summary.sync_bytes_sent()),
                     human_share(*ratio), human(summary.record_bytes_trained()));
}

std::string times_to_accuracy(const Summary& summary) {
  std::string text;
  for (const auto& [level, seconds] : summary.time_to_accuracy_s) {
    text += text.empty() ? "reached " : ", ";
    text += fmt::format("{:g} % after {}", std::strtod(level.c_str(), nullptr) * 100, human_seconds(seconds));
  }
  return text;
}

void print_summary(const Summary& summary, std::ostream& out) {
  out << fmt::format("  {:<12} {:>10} {:>8} {:>9} {:>8} {:>10} {:>10} {:>10} {:>10} {:>9}\n", "device",
                     "trained", "waiting", "stream", "batch", "computing", "exchange", "sent", "received",
                     "dropped");
  for (const auto& device : summary.devices) out << device_row(device) << '\n';
  print_drops(summary, out);
  print_restarts(summary, out);
  out << fmt::format("  group: {} rounds, {:.0f} rows/s; {}\n", grouped(summary.rounds), summary.rows_per_s,
                     equality(summary));
  if (const std::string cost = sync_cost(summary); !cost.empty()) out << "  bytes: " << cost << '\n';
  if (summary.accuracy) {
    const auto times = times_to_accuracy(summary);
    out << fmt::format("  accuracy: {:.2f} %{}\n", *summary.accuracy * 100,
                       times.empty() ? "" : " (" + times + ")");
  }
  print_last_rows(summary.last_rows(), out);
}

Summary merge_summaries(const std::vector<Summary>& parts) {
  Summary all;
  std::string last;  // digest after the last round
  for (const auto& part : parts) {
    // A restarted device reports only its last process.
    if (part.rounds >= all.rounds) all.rows_per_s = part.rows_per_s;
    all.rounds = std::max(all.rounds, part.rounds);
    all.parameters_equal = all.parameters_equal && part.parameters_equal;
    // Every device compares the digests of all devices.
    all.digests_compared = std::max(all.digests_compared, part.digests_compared);
    if (!all.accuracy) all.accuracy = part.accuracy;
    if (all.time_to_accuracy_s.empty()) all.time_to_accuracy_s = part.time_to_accuracy_s;
    all.devices.insert(all.devices.end(), part.devices.begin(), part.devices.end());
  }
  for (const auto& part : parts) {
    if (part.rounds != all.rounds) continue;
    for (const auto& device : part.devices) {
      if (device.digest.empty()) continue;
      if (last.empty()) last = device.digest;
      if (device.digest != last) all.parameters_equal = false;
    }
  }
  return all;
}

}  // namespace rivulet::runtime::cli
