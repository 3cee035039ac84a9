#pragma once
#include <iosfwd>

#include "core/time.h"
#include "runtime/cli/command.h"
#include "runtime/cli/progress_line.h"
#include "runtime/config/config.h"
#include "runtime/status/status_json.h"

namespace rivulet::runtime::cli {

/// Status of a running device in one line. On a terminal it is redrawn twice a second below the scrolling
/// log; elsewhere a line is printed every ten seconds, the first after ten seconds. The destructor completes
/// the line. Owner: the main thread.
class RunLine {
 public:
  /// `descriptor`: descriptor behind `out`. Omits the line instead of blocking if the descriptor cannot
  /// accept output.
  RunLine(const Terminal& terminal, std::ostream& out, int descriptor, const Config& config);
  void look(const NodeStatus& status, TimePoint now);

 private:
  const NodeStatusText text_;
  const bool interactive_;
  const int width_;
  const Duration every_;
  const int descriptor_;
  ProgressLine line_;
  TimePoint next_{};
};

}  // namespace rivulet::runtime::cli
