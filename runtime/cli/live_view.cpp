#include "runtime/cli/live_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/printable.h"
#include "runtime/cli/text.h"

namespace rivulet::runtime::cli {
namespace {

constexpr int chart_height = 6;

std::string painted(const std::string& text, const char* code, const ViewStyle& style) {
  return style.colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}

const char* colour_of(const std::string& state) {
  // A healthy device is "waiting" between two rounds, and "idle" without a stream.
  if (state == "training" || state == "waiting" || state == "idle") return "32";
  if (state == "failed" || state == "killed") return "31";
  return "33";
}

bool waits_for_group(const NodeReport& d) {
  return d.state == "forming" || d.state == "joining" || d.state == "cooling down" || d.state == "paused";
}

/// Returns the state, and the reported phrase if it adds information.
std::string words_of(const DeviceView& d) {
  if (d.phrase.empty() || d.state == "training") return printable(d.state);
  return printable(d.phrase.starts_with(d.state) ? d.phrase : d.state + ": " + d.phrase);
}

std::string loss_text(const DeviceView& d, int digits) {
  return d.loss ? fmt::format("{:.{}f}", *d.loss, digits) : "-";
}

std::string device_line(const DeviceView& d, const ViewStyle& style) {
  const auto numbers =
      fmt::format("  {:<10} {:>7} {:>8.0f} {:>5} {:>8} {:>7.0f} {:>7}  ", clipped(printable(d.id), 10),
                  d.pid > 0 ? std::to_string(d.pid) : "", d.stream_rate.value_or(0), count_of(d.batch_rows),
                  grouped(count_of(d.rows_waiting)), d.rows_per_s, loss_text(d, 4));
  const auto words = words_of(d);
  const int left = style.width - static_cast<int>(numbers.size());
  return left <= 0 ? clipped(numbers, style.width)
                   : numbers + painted(clipped(words, left), colour_of(d.state), style);
}

/// The curve on a column grid: each column holds the last value measured before its end.
std::vector<std::optional<double>> columns_of(const GroupView& group, int columns) {
  std::vector<std::optional<double>> values(static_cast<std::size_t>(columns));
  const double duration = std::max({group.duration, group.seconds, 1e-9});
  for (int c = 0; c < columns; ++c) {
    const double begin = duration * c / columns;
    const double end = duration * (c + 1) / columns;
    if (begin > group.seconds) break;
    for (const auto& [second, accuracy] : group.curve) {
      if (second <= end) values[static_cast<std::size_t>(c)] = accuracy;
    }
  }
  return values;
}

std::vector<std::string> chart_lines(const GroupView& group, const ViewStyle& style) {
  const int columns = std::clamp(style.width - 12, 8, 64);
  auto lines = area_chart(columns_of(group, columns), 0.0, 1.0, chart_height, style.unicode);
  const char* wall = style.unicode ? "│" : "|";
  for (int i = 0; i < chart_height; ++i) {
    const std::string label = i == 0 ? "100 %" : (i == chart_height - 1 ? "  0 %" : "     ");
    auto& line = lines[static_cast<std::size_t>(i)];
    line = fmt::format("  {} {}{}", label, wall, painted(line, "36", style));
  }
  return lines;
}

std::pair<std::uint64_t, std::uint64_t> bytes_of(const GroupView& group) {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  for (const auto& d : group.devices) {
    sent += count_of(d.bytes_sent);
    received += count_of(d.bytes_received);
  }
  return {sent, received};
}

std::string accuracy_text(const GroupView& group) {
  if (group.curve.empty()) return "not measured yet";
  return fmt::format("{:.1f} %", group.curve.back().second * 100);
}

std::string exchange_line(const GroupView& group) {
  const auto [sent, received] = bytes_of(group);
  const double seconds = std::max(group.seconds, 1e-9);
  const std::uint64_t rounds = group.devices.empty() ? 0 : count_of(group.devices.front().steps);
  return fmt::format("  exchanged {} sent, {} received ({}/s), {} rounds",
                     human_bytes(static_cast<double>(sent)), human_bytes(static_cast<double>(received)),
                     human_bytes(static_cast<double>(sent + received) / seconds), grouped(rounds));
}

/// Lists devices and their states while there are no figures yet.
std::string forming_line(const GroupView& group) {
  std::string line = "forming:";
  for (const auto& d : group.devices) {
    line += fmt::format("  {} {};", d.id, words_of(d));
  }
  line.pop_back();
  return line;
}

}  // namespace

std::string forming_phrase(const GroupView& group) {
  if (group.seconds <= 0) return "";
  for (const auto& d : group.devices)
    if (waits_for_group(d)) return words_of(d);
  return "";
}

std::vector<std::string> render_screen(const GroupView& group, const ViewStyle& style) {
  std::vector<std::string> lines;
  lines.push_back(
      painted(clipped(fmt::format("{}   {:.0f} of {:.0f} s", group.title, group.seconds, group.duration),
                      style.width),
              "1", style));
  lines.push_back(clipped(fmt::format("  {:<10} {:>7} {:>8} {:>5} {:>8} {:>7} {:>7}  {}", "device", "pid",
                                      "stream/s", "batch", "waiting", "rows/s", "loss", "state"),
                          style.width));
  for (const auto& device : group.devices) lines.push_back(device_line(device, style));
  lines.push_back(clipped("  accuracy on held-out images: " + accuracy_text(group), style.width));
  for (auto& line : chart_lines(group, style)) lines.push_back(std::move(line));
  lines.push_back(clipped(exchange_line(group), style.width));
  // Always two lines, since a redraw must have the same height. A device's line may be too narrow for its
  // phrase.
  lines.push_back(painted(clipped("  " + group.event, style.width), "31", style));
  const auto waits = forming_phrase(group);
  lines.push_back(painted(clipped("  " + (waits.empty() ? group.hint : waits), style.width),
                          waits.empty() ? "2" : "33", style));
  return lines;
}

std::string render_line(const GroupView& group) {
  if (group.seconds <= 0) return forming_line(group);
  std::string line = fmt::format("{:5.1f} s  held-out accuracy {}", group.seconds,
                                 group.curve.empty() ? "-" : accuracy_text(group));
  for (const auto& d : group.devices) {
    line += fmt::format("  | {} {}: {:.0f} rows/s, batch {}, waiting {}, loss {}", d.id, words_of(d),
                        d.rows_per_s, count_of(d.batch_rows), count_of(d.rows_waiting), loss_text(d, 3));
  }
  const auto [sent, received] = bytes_of(group);
  return line + fmt::format("  | sent {}, received {}", human_bytes(static_cast<double>(sent)),
                            human_bytes(static_cast<double>(received)));
}

ScreenPainter::~ScreenPainter() {
  if (drawn_ > 0) out_ << "\x1b[?25h" << std::flush;
}

void ScreenPainter::paint(const std::vector<std::string>& lines) {
  if (drawn_ == 0) out_ << "\x1b[?25l";  // hides the cursor against flicker
  if (drawn_ > 0) out_ << "\x1b[" << drawn_ << 'A';
  for (const auto& line : lines) out_ << "\x1b[2K" << line << '\n';
  out_ << std::flush;
  drawn_ = lines.size();
}

}  // namespace rivulet::runtime::cli
