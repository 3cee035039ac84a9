#pragma once
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/status/page/node_report.h"

namespace rivulet::runtime::cli {

/// One device as its status page shows it, "starting" until that has come.
struct DeviceView : NodeReport {
  DeviceView() { state = "starting"; }
  explicit DeviceView(NodeReport page) : NodeReport(std::move(page)) {}
  double rows_per_s = 0;  ///< trained, over the last seconds
  int pid = 0;            ///< of its process; no page shows it
};

/// The group at one moment.
struct GroupView {
  std::string title;
  double seconds = 0;   ///< since the group formed
  double duration = 0;  ///< when it will end
  std::vector<DeviceView> devices;
  std::vector<std::pair<double, double>> curve;  ///< (second, held-out accuracy)
  std::string event;                             ///< what happened last: "device-2 (pid 7) was killed; ..."
  std::string hint;                              ///< what a user may try, shown while there is nothing else
};

/// "forming: waiting for device-3", of the first device that reports it in a group that had formed before;
/// else empty.
std::string forming_phrase(const GroupView& group);

/// How text may look.
struct ViewStyle {
  bool colour = false;
  bool unicode = false;
  int width = 100;
};

/// The screen: title, a line per device, the accuracy curve, bytes. Without line ends; none wider than
/// style.width.
std::vector<std::string> render_screen(const GroupView& group, const ViewStyle& style);
/// The same in one line, for pipes and logs.
std::string render_line(const GroupView& group);

/// Draws over what it drew last. ANSI; for terminals only.
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
