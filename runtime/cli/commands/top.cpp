#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <ostream>

#include "core/clock.h"
#include "runtime/cli/child.h"
#include "runtime/cli/command.h"
#include "runtime/cli/live_view.h"
#include "runtime/cli/node_pages.h"
#include "runtime/cli/node_text.h"
#include "runtime/cli/text.h"
#include "runtime/config/config.h"
#include "runtime/process/signals.h"

namespace rivulet::runtime::cli {
namespace {

constexpr int step_ms = 50;
constexpr const char* top_footer = R"(Examples:
  rivulet top                                     the device on this machine and its group, once a second
  rivulet top 10.0.0.7:9464 --token-file token --interval 5s
  rivulet top --count 10 | tee log                in a pipe: one line per update

Ctrl-C exits. On a terminal it shows a table of the group, a chart of the loss since it started, and a sentence on
the last round; for more, see rivulet status. If the device stops answering, it prints the error and polls
until the device answers again.)";

class TopCommand final : public Command {
 public:
  explicit TopCommand(CLI::App& root)
      : app_(root.add_subcommand("top", "watch a running device and its group live")) {
    pages_.add_to(*app_);
    app_->add_option("--interval", interval_, "time between updates")
        ->type_name("DURATION")
        ->capture_default_str();
    app_->add_option("--count", count_, "number of updates before it exits (default: unlimited)")
        ->type_name("N")
        ->check(CLI::Range(1, 1'000'000'000));
    app_->footer(top_footer);
  }
  [[nodiscard]] bool chosen() const override { return app_->parsed(); }

  ExitCode execute(Terminal& terminal) override {
    const auto interval = parse_duration(interval_);
    if (!interval || interval.value() < std::chrono::milliseconds(100))
      return report_error(
          terminal, {ErrorCode::usage,
                     "--interval: '" + interval_ + "' is not a duration of at least 100ms, such as 1s"});
    if (auto known = pages_.resolve(terminal); !known) return report_error(terminal, known.error());
    auto answer = fetch_all(pages_);
    if (!answer) return report_error(terminal, answer.error());
    StopRequest stop{0};
    const SignalHandlers handlers(stop);
    ScreenPainter painter(terminal.out_screen());
    const RealClock clock;
    // Stops when the reader has closed the pipe.
    for (int look = 0; stop.load() == 0 && terminal.out.good() && (count_ == 0 || look < count_); ++look) {
      if (look > 0) answer = fetch_all(pages_, &stop);
      if (stop.load() != 0) break;  // the stop may have cancelled the request
      show(terminal, painter, answer, clock.now());
      if (count_ != 0 && look + 1 == count_) break;
      for (const auto next = clock.now() + interval.value(); stop.load() == 0 && clock.now() < next;)
        pause_ms(step_ms);
    }
    return ExitCode::ok;
  }

 private:
  void show(Terminal& terminal, ScreenPainter& painter, const Result<NodeAnswer>& answer, TimePoint now) {
    if (answer) {
      answered_ = now;
      seen_ = answer.value().report;
      keep_loss(now);
    }
    const auto silence = answer ? std::string()
                                : fmt::format("no answer from {} for {:.0f} s: {}", pages_.address(),
                                              to_seconds(now - answered_), answer.error().message);
    if (!terminal.interactive) {
      terminal.out << (answer ? render_report_line(seen_) : silence) << '\n' << std::flush;
      return;
    }
    auto lines = render_top(seen_, course_, {terminal.colour, terminal.unicode, terminal.width});
    lines.insert(lines.begin(), clipped(silence, terminal.width));
    height_ = std::max(height_, lines.size());
    lines.resize(height_);  // a redraw must have the same height
    painter.paint(lines);
  }

  void keep_loss(TimePoint now) {
    if (!seen_.loss) return;
    course_.losses.push_back(*seen_.loss);
    looked_.push_back(now);
    if (looked_.size() > LossCourse::kept) {
      course_.losses.erase(course_.losses.begin());
      looked_.pop_front();
    }
    course_.seconds = to_seconds(looked_.back() - looked_.front());
  }

  CLI::App* app_;
  NodePages pages_;
  LossCourse course_;
  std::deque<TimePoint> looked_;  ///< time of each loss in course_
  std::string interval_ = "1s";
  int count_ = 0;
  NodeReport seen_;
  TimePoint answered_{};
  std::size_t height_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_top_command(CLI::App& root) {
  return std::make_unique<TopCommand>(root);
}

}  // namespace rivulet::runtime::cli
