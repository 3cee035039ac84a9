#include "runtime/cli/run_line.h"

#include <poll.h>

#include "runtime/cli/node_text.h"
#include "runtime/cli/text.h"

namespace rivulet::runtime::cli {

namespace {

bool takes_a_line(int descriptor) {
  pollfd to{descriptor, POLLOUT, 0};
  return ::poll(&to, 1, 0) == 1;
}

}  // namespace

RunLine::RunLine(const Terminal& terminal, std::ostream& out, int descriptor, const Config& config)
    : text_{config.device.id, config.job.name, config.model.name, config.source.topics},
      interactive_(terminal.interactive),
      width_(terminal.width),
      every_(interactive_ ? Duration(std::chrono::milliseconds(500)) : std::chrono::seconds(10)),
      descriptor_(descriptor),
      line_(out, interactive_, Duration(0)) {}

void RunLine::look(const NodeStatus& status, TimePoint now) {
  if (next_ == TimePoint{}) next_ = now + every_;
  if (now < next_) return;
  next_ = now + every_;
  if (!takes_a_line(descriptor_)) return;
  const auto report = read_node_report(status_json(status, text_), "{}");
  if (!report) return;
  const auto line = render_report_line(*report);
  line_.show(interactive_ ? clipped(line, width_ - 1) : line);
}

}  // namespace rivulet::runtime::cli
