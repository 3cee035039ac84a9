#pragma once
#include <iosfwd>

#include "core/time.h"
#include "runtime/cli/command.h"
#include "runtime/cli/progress_line.h"
#include "runtime/config/config.h"
#include "runtime/status/status_json.h"

namespace rivulet::runtime::cli {

/// What a device does now, in one line: drawn in place on a terminal, twice a second, while its log scrolls
/// above; every ten seconds anew elsewhere, for the first time ten seconds after the start. Ends the line
/// when it is destroyed. Owner: the main thread.
class RunLine {
 public:
  /// `descriptor`: what `out` writes to. A reader that does not read delays nothing: its lines are left out.
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
