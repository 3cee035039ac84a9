#include "runtime/cli/progress_line.h"

#include <algorithm>
#include <cmath>
#include <ostream>

namespace rivulet::runtime::cli {

std::string progress_bar(double fraction, int width, bool unicode) {
  const int filled = static_cast<int>(std::lround(std::clamp(fraction, 0.0, 1.0) * width));
  std::string bar = "[";
  for (int i = 0; i < width; ++i) bar += i < filled ? (unicode ? "█" : "#") : (unicode ? "░" : ".");
  return bar + "]";
}

ProgressLine::~ProgressLine() {
  if (drawn_) out_ << '\n' << std::flush;
}

void ProgressLine::show(const std::string& text) {
  if (interactive_) {
    out_ << "\r\x1b[2K" << text << std::flush;
    drawn_ = true;
    return;
  }
  const auto now = clock_.now();
  if (now < next_line_) return;
  next_line_ = now + line_every_;
  out_ << text << '\n' << std::flush;
}

}  // namespace rivulet::runtime::cli
