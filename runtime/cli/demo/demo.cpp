#include "runtime/cli/demo/demo.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <ostream>

#include "runtime/cli/text.h"
#include "runtime/status/http/http_server.h"
#include "stream/topics.h"

namespace rivulet::runtime::cli {
namespace {

constexpr auto start_deadline = std::chrono::seconds(30);  ///< start of the embedded broker
constexpr auto answer_deadline = std::chrono::seconds(8);  ///< answer of an existing broker
constexpr auto forming_deadline = std::chrono::seconds(60);
constexpr double rate_window_s = 3;  ///< averaging window of rows/s
constexpr double patience_s = 10;    ///< time for a clean exit
constexpr std::size_t log_lines = 8;
constexpr const char* address_prefix = "bootstrap.servers=";

Status write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (file.flush()) return ok();
  return Error{ErrorCode::io, fmt::format("cannot write {}", path.string())};
}

std::uint64_t plain(const NodeReport::Whole& value) {
  return count_of(value);
}
double plain(const NodeReport::Number& value) {
  return value.value_or(0);
}
std::map<std::string, std::uint64_t> plain(const NodeReport::Counts& counts) {
  return {counts.begin(), counts.end()};
}

/// Makes a summary from a status page, which contains neither CPU time nor memory.
DeviceSummary summary_of(const NodeReport& page) {
  DeviceSummary out;
  out.id = page.id;
#define RIVULET_VALUE(...)
#define RIVULET_TOTAL(key, ...) out.key = plain(page.key);
#include "core/metrics.def"
  const auto batches = static_cast<double>(count_of(page.batches));
  out.batch_mean = batches > 0 ? static_cast<double>(out.rows_trained) / batches : 0;
  out.cpu_s = std::numeric_limits<double>::quiet_NaN();  // null in JSON
  out.digest = page.digest;
  return out;
}

}  // namespace

Demo::Demo(DemoPlan& plan, const Terminal& terminal, std::ostream& show, bool redraw, const StopRequest& stop)
    : plan_(plan), terminal_(terminal), show_(show), redraw_(redraw), stop_(stop), began_(clock_.now()) {
  view_.title = fmt::format("{} devices train {} on MNIST through Kafka", plan.devices(), plan.model);
  view_.duration = plan.seconds;
  for (std::size_t i = 0; i < plan.devices(); ++i) {
    view_.devices.emplace_back();
    view_.devices.back().id = device_name(i);
  }
  trained_.resize(plan.processes());
  lives_.resize(plan.processes());
  devices_.reserve(plan.processes());
  if (plan.elastic) script_.emplace(*plan.elastic);
}

DemoOutcome Demo::play() {
  DemoOutcome outcome;
  if (redraw_) painter_.emplace(show_);
  outcome.played = play_to_the_end();
  painter_.reset();
  // Clients first: if the broker exited before them, their logs would fill with errors.
  std::vector<Child*> children;
  for (auto* group : {&devices_, &feeder_}) {
    for (auto& child : *group) children.push_back(&child);
  }
  const auto hurry = [this] { return stop_.load() >= 2; };
  end_all(children, patience_s, hurry);
  if (outcome.played) outcome.log_ends = ends_of_logs();
  for (auto& child : broker_) end_all({&child}, patience_s, hurry);
  collect(outcome);
  return outcome;
}

/// Call before the embedded broker exits: its topics are lost then.
Result<std::vector<stream::LogEnds>> Demo::ends_of_logs() const {
  std::vector<stream::TopicPartition> partitions;
  partitions.reserve(plan_.devices());
  for (std::size_t i = 0; i < plan_.devices(); ++i)
    partitions.push_back({plan_.topic, {0, static_cast<std::int32_t>(i)}});
  return stream::log_ends({{"bootstrap.servers", plan_.brokers}}, partitions, answer_deadline);
}

Status Demo::play_to_the_end() {
  if (auto status = start_broker(); !status) return status;
  if (auto status = start_devices(); !status) return status;
  return watch();
}

Result<Child> Demo::start_child(const std::string& name, std::vector<std::string> arguments) {
  return Child::start({name, std::move(arguments), (plan_.directory / (name + ".out")).string(),
                       (plan_.directory / (name + ".log")).string()});
}

Status Demo::start_broker() {
  if (!plan_.embedded) {
    const Status made = stream::create_topic({{"bootstrap.servers", plan_.brokers}}, plan_.topic,
                                             static_cast<int>(plan_.devices()), answer_deadline);
    // A broker without an answer is unavailable.
    if (!made && made.error().code == ErrorCode::timed_out)
      return Error{ErrorCode::unavailable, made.error().message};
    return made;
  }
  auto child = start_child("broker", broker_arguments(plan_));
  if (!child) return child.error();
  broker_.push_back(std::move(child).value());
  const auto deadline = clock_.now() + start_deadline;
  while (stop_.load() == 0 && clock_.now() < deadline) {
    const auto line = broker_.front().first_output_line();
    if (line.starts_with(address_prefix)) {
      plan_.brokers = line.substr(std::string(address_prefix).size());
      return ok();
    }
    if (broker_.front().exit_code()) return death_of(broker_.front());
    pause_ms(20);
  }
  if (stop_.load() != 0) return Error{ErrorCode::cancelled, "interrupted"};
  return Error{ErrorCode::unavailable, "the embedded broker did not start within 30 s"};
}

Status Demo::start_devices() {
  if (auto status = write_file(job_file(plan_), job_file_text(plan_)); !status) return status;
  for (std::size_t i = 0; i < plan_.devices(); ++i)
    if (auto status = start_device(i, plan_.seconds); !status) return status;
  view_.hint = plan_.elastic ? "the demo kills a device for good, adds one and stops one; the others train on"
                             : "try a failure: kill -9 PID, of one or more devices; the demo restarts them, "
                               "and the group resumes";
  if (painter_) return ok();
  for (std::size_t i = 0; i < devices_.size(); ++i)
    show_ << fmt::format("{}: pid {}, status page http://127.0.0.1:{}/\n", devices_[i].name(),
                         devices_[i].pid(), plan_.http_ports[i]);
  show_ << view_.hint << '\n' << std::flush;
  return ok();
}

/// The device with the next index.
Status Demo::start_device(std::size_t i, double seconds) {
  std::error_code error;
  std::filesystem::create_directories(device_directory(plan_, i), error);
  auto child = start_child(device_name(i), device_arguments(plan_, i, seconds));
  if (!child) return child.error();
  devices_.push_back(std::move(child).value());
  view_.devices[i].pid = devices_.back().pid();
  last_start_ = clock_.now();
  return ok();
}

bool Demo::all_in(std::initializer_list<std::string_view> states) const {
  return std::all_of(view_.devices.begin(), view_.devices.end(), [&](const DeviceView& d) {
    return std::find(states.begin(), states.end(), d.state) != states.end();
  });
}

/// Starts the feeder while the group is forming, so that rows are ready when it has formed. Kafka buffers
/// rows that arrive earlier.
Status Demo::start_feeder_when_ready() {
  if (!feeder_.empty()) return ok();
  if (!all_in({"forming", "connecting", "training", "waiting", "idle"})) return ok();
  auto child = start_child("feeder", feeder_arguments(plan_));
  if (!child) return child.error();
  feeder_.push_back(std::move(child).value());
  return ok();
}

Status Demo::watch() {
  for (;;) {
    if (stop_.load() != 0) return Error{ErrorCode::cancelled, "interrupted"};
    look();
    if (auto status = tend_devices(); !status) return status;
    if (auto status = start_feeder_when_ready(); !status) return status;
    if (auto status = change_group(); !status) return status;
    draw();
    if (all_devices_ended()) return check_children();
    if (auto status = check_children(); !status) return status;
    if (!formed_at_ && clock_.now() > began_ + forming_deadline) {
      return Error{ErrorCode::unavailable, "the group did not form within 60 s"};
    }
    if (time_is_over()) {
      return Error{ErrorCode::timed_out, "a device did not exit within 20 s of the end of the training time"};
    }
    pause_ms(250);
  }
}

bool Demo::all_devices_ended() {
  const bool comes_back =
      std::any_of(lives_.begin(), lives_.end(), [](const Life& life) { return life.start_at.has_value(); });
  return !comes_back && std::all_of(devices_.begin(), devices_.end(),
                                    [](Child& child) { return child.exit_code().has_value(); });
}

/// Prefers the original cause of a failure: exit code 75 only means that a peer was lost.
Status Demo::check_children() {
  for (auto* group : {&broker_, &feeder_})
    for (auto& child : *group)
      if (child.exit_code()) return death_of(child);
  Child* witness = nullptr;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const auto code = devices_[i].exit_code();
    if (!code || fate_of(end_of(i)) != Fate::fatal) continue;
    if (*code != static_cast<int>(ExitCode::try_again)) return death_of(devices_[i]);
    witness = &devices_[i];
  }
  return witness == nullptr ? ok() : death_of(*witness);
}

Error Demo::death_of(Child& child) const {
  const int code = child.exit_code().value_or(0);
  const auto how = code > 128 ? fmt::format("was killed by signal {}", code - 128)
                              : fmt::format("exited with code {}", code);
  return {ErrorCode::unavailable, fmt::format("{} {}; last lines of its log:\n    {}", child.name(), how,
                                              fmt::join(child.last_log_lines(log_lines), "\n    "))};
}

void Demo::look() {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (!devices_[i].exit_code()) look_at(i);
  }
  look_at_clock();
  const auto& first = view_.devices.front();
  const auto accuracy = first.held_out_accuracy;
  if (!accuracy || (!view_.curve.empty() && view_.curve.back().second == *accuracy)) return;
  view_.curve.emplace_back(view_.seconds, *accuracy);
  time_to_accuracy_.add(view_.seconds, *accuracy);
}

/// Time since the group formed, including restarts.
void Demo::look_at_clock() {
  const auto now = clock_.now();
  double trained_for = 0;
  for (const auto& device : view_.devices)
    trained_for = std::max(trained_for, device.seconds_training.value_or(0));
  if (!formed_at_ && all_in({"training", "waiting", "idle"})) formed_at_ = now - from_seconds(trained_for);
  if (formed_at_) view_.seconds = to_seconds(now - *formed_at_);
}

void Demo::look_at(std::size_t i) {
  const auto page = http_get("127.0.0.1", plan_.http_ports[i], "/api/v1/status");
  if (!page) return;  // not up yet, or exited
  auto report = read_node_report(page.value(), "{}");
  if (!report) return;
  DeviceView seen(std::move(*report));
  const double now = to_seconds(clock_.now() - began_);
  auto& history = trained_[i];
  history.emplace_back(now, count_of(seen.rows_trained));
  while (history.size() > 2 && history.front().first < now - rate_window_s) history.pop_front();
  const double seconds = history.back().first - history.front().first;
  if (seconds > 0) {
    seen.rows_per_s = static_cast<double>(history.back().second - history.front().second) / seconds;
  }
  seen.pid = devices_[i].pid();
  view_.devices[i] = std::move(seen);
}

void Demo::draw() {
  if (painter_) {
    painter_->paint(render_screen(view_, {terminal_.colour, terminal_.unicode, terminal_.width}));
    return;
  }
  const auto now = clock_.now();
  const bool waits = !forming_phrase(view_).empty();
  const bool news =
      std::exchange(waited_, waits) != waits;  // a group often resumes before the next line is due
  if (now < next_line_ && !news) return;
  next_line_ = now + std::chrono::seconds(2);
  show_ << render_line(view_) << '\n' << std::flush;
}

/// Makes a summary from the last page read, for a device that printed none.
Summary Demo::last_seen(std::size_t i) const {
  const auto& seen = view_.devices[i];
  Summary summary;
  summary.rounds = count_of(seen.steps);
  summary.devices.push_back(summary_of(seen));
  return summary;
}

void Demo::collect(DemoOutcome& outcome) const {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    auto summary = summary_from_json(devices_[i].last_output_line());
    const bool killed = lives_[i].intended_end && plan_.elastic->killed == i;
    outcome.complete = outcome.complete && (summary.has_value() || killed);
    outcome.summaries.push_back(summary ? std::move(*summary) : last_seen(i));
    auto& said = outcome.summaries.back();
    for (auto& device : said.devices) device.restarts = static_cast<std::uint64_t>(lives_[i].restarts);
    if (i == 0 && lives_[i].restarts > 0) said.time_to_accuracy_s = time_to_accuracy_.reached();
  }
  outcome.complete = outcome.complete && devices_.size() == plan_.processes();
  outcome.seconds = to_seconds(clock_.now() - began_);
  if (!script_) return;
  outcome.changes = script_->changes();
  outcome.changes_complete = script_->complete();
}

}  // namespace rivulet::runtime::cli
