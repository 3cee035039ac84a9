#pragma once
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/status/page/node_report.h"

namespace rivulet::runtime::cli {

/// One device as reported by its status page; "starting" until the first report.
struct DeviceView : NodeReport {
  DeviceView() { state = "starting"; }
  explicit DeviceView(NodeReport page) : NodeReport(std::move(page)) {}
  double rows_per_s = 0;  ///< trained rows, recent average
  int pid = 0;            ///< process id; not on the page
};

/// The group at one moment.
struct GroupView {
  std::string title;
  double seconds = 0;   ///< time since the group formed
  double duration = 0;  ///< planned end, in seconds
  std::vector<DeviceView> devices;
  std::vector<std::pair<double, double>> curve;  ///< (second, held-out accuracy)
  std::string event;                             ///< latest event: "device-2 (pid 7) was killed; ..."
  std::string hint;                              ///< suggestion for the user; shown if that line is free
};

/// Returns the phrase of the first device that waits for the group, such as "forming: waiting for device-3",
/// once the group has formed before; otherwise empty.
std::string forming_phrase(const GroupView& group);

/// Capabilities of the terminal.
struct ViewStyle {
  bool colour = false;
  bool unicode = false;
  int width = 100;
};

/// Renders the screen: title, one line per device, the accuracy curve, bytes. Lines have no line ends and are
/// at most style.width wide.
std::vector<std::string> render_screen(const GroupView& group, const ViewStyle& style);
/// Renders one line, for pipes and logs.
std::string render_line(const GroupView& group);

/// Redraws the lines in place. ANSI; for terminals only.
class ScreenPainter {
 public:
  explicit ScreenPainter(std::ostream& out) : out_(out) {}
  ~ScreenPainter();
  ScreenPainter(const ScreenPainter&) = delete;
  ScreenPainter& operator=(const ScreenPainter&) = delete;
  void paint(const std::vector<std::string>& lines);

 private:
  std::ostream& out_;
  std::size_t drawn_ = 0;
};

}  // namespace rivulet::runtime::cli
