#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "runtime/cli/live_view.h"
#include "runtime/status/page/node_report.h"

/// Renders a device's pages as lines of text. Never emits control characters from a report. Pure.
namespace rivulet::runtime::cli {

/// The full report for `rivulet status`. Lines have no line ends and are at most `width` wide.
std::vector<std::string> render_report(const NodeReport& report, int width);
/// One line, for pipes and logs.
std::string render_report_line(const NodeReport& report);

/// Losses for the chart of `rivulet top`, oldest first, and their time span.
struct LossCourse {
  static constexpr std::size_t kept = 600;
  std::vector<double> losses;
  double seconds = 0;  ///< time from the first to the last loss
};
/// The screen of `rivulet top`: a table of the group, a loss chart, one sentence on the last round, and a
/// line per problem. Lines are at most style.width wide.
std::vector<std::string> render_top(const NodeReport& report, const LossCourse& course,
                                    const ViewStyle& style);

}  // namespace rivulet::runtime::cli
