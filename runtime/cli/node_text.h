#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "runtime/cli/live_view.h"
#include "runtime/status/page/node_report.h"

/// What a device's pages hold, as lines for a person. Whatever is in a report, a terminal is sent no control
/// character. Pure.
namespace rivulet::runtime::cli {

/// For `rivulet status`: all of it. Without line ends; none wider than `width`.
std::vector<std::string> render_report(const NodeReport& report, int width);
/// The same in one line, for pipes and logs.
std::string render_report_line(const NodeReport& report);

/// What a chart of `rivulet top` shows: the losses it has seen, oldest first, and since when.
struct LossCourse {
  static constexpr std::size_t kept = 600;
  std::vector<double> losses;
  double seconds = 0;  ///< from the first to the last of them
};
/// For `rivulet top`, on a terminal: a table of the group, a chart of the loss, one sentence on the last
/// round; and a line for each thing that somebody has to look at. None wider than style.width.
std::vector<std::string> render_top(const NodeReport& report, const LossCourse& course,
                                    const ViewStyle& style);

}  // namespace rivulet::runtime::cli
