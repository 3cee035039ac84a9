#pragma once
#include <string>

#include "core/clock.h"
#include "runtime/cli/command.h"

namespace rivulet::runtime::cli {

/// Returns "[#####.....]", filled to `fraction`.
std::string progress_bar(double fraction, int width, bool unicode);

/// Progress of a long command: redrawn in place on a terminal, occasional lines elsewhere.
class ProgressLine {
 public:
  ProgressLine(std::ostream& out, bool interactive, Duration line_every = std::chrono::seconds(2))
      : out_(out), interactive_(interactive), line_every_(line_every) {}
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(const std::string& text);

 private:
  std::ostream& out_;
  bool interactive_;
  const Duration line_every_;
  bool drawn_ = false;
  RealClock clock_;
  TimePoint next_line_{};
};

}  // namespace rivulet::runtime::cli
