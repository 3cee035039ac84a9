#include "runtime/cli/stop_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "core/rng.h"
#include "runtime/cli/child.h"

namespace rivulet::runtime::cli {
namespace {

using sync::membership::DeviceEntry;
using sync::membership::Fold;
using sync::membership::Stop;

constexpr int looking_step_ms = 20;
constexpr Duration patience_with_the_lost = std::chrono::seconds(10);

Stop make_stop() {
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  const auto pid = static_cast<std::uint64_t>(getpid());
  const auto salt = derive_seed(static_cast<std::uint64_t>(unix_time_ms()), host, pid);
  return {fmt::format("{:016x}", salt), host, static_cast<std::int64_t>(pid)};
}

/// True if the device has been silent since its peers started to form the next view.
bool is_lost(const Fold& fold, const DeviceEntry& device) {
  if (is_live(fold, device)) return false;
  if (view_left(fold)) return true;
  const auto member = fold.view.sessions.find(device.hello.device);
  if (member != fold.view.sessions.end() && member->second == device.session) return false;  // it trains
  return std::any_of(fold.devices.begin(), fold.devices.end(),
                     [&](const auto& entry) { return is_live(fold, entry.second); });
}

bool has_ended(const Fold& fold, const StoppedDevice& device) {
  const auto it = fold.devices.find(device.id);
  return it == fold.devices.end() || it->second.session != device.session || it->second.left;
}

std::string names_of(const std::vector<StoppedDevice>& devices) {
  std::string text;
  for (const auto& device : devices) text += (text.empty() ? "" : ", ") + device.id;
  return text;
}

/// Devices that were lost by a group that has gone on without them.
std::vector<std::string> devices_left_behind(const Fold& fold) {
  std::vector<std::string> ids;
  const auto awaited = devices_to_stop(fold);
  for (const auto& [id, device] : fold.devices)
    if (is_open(fold, device) && !device.hello.devices.is_fixed() &&
        std::ranges::count(awaited, id, &StoppedDevice::id) == 0)
      ids.push_back(id);
  return ids;
}

/// A STOP in progress: the devices that have stopped and those still running.
class Stopping {
 public:
  Stopping(ControlTopic& topic, TimePoint end, const StopRequest& interrupted)
      : topic_(topic), end_(end), interrupted_(interrupted) {}

  /// Waits until the STOP is read back: from then on every device reads it.
  Status write() {
    const Stop stop = make_stop();
    if (auto written = topic_.append(stop); !written) return written;
    for (;;) {
      waiting_ = devices_to_stop(topic_.fold());
      const auto read = topic_.next();
      if (!read) return read.error();
      const auto* own = read.value() && topic_.last() ? std::get_if<Stop>(&*topic_.last()) : nullptr;
      if (own != nullptr && own->nonce == stop.nonce) return ok();
      if (read.value()) continue;
      if (auto waited = wait(); !waited) return waited;
      if (clock_.now() >= end_)
        return Error{ErrorCode::timed_out,
                     fmt::format("the STOP of job {} did not appear in the control topic before the timeout",
                                 topic_.job())};
    }
  }

  Status watch(const std::function<void(const std::string&)>& say) {
    const TimePoint lost_until = std::min(end_, clock_.now() + patience_with_the_lost);
    for (;;) {
      const auto read = topic_.next();
      if (!read) return read.error();
      move_ended(say);
      const bool sure = std::any_of(waiting_.begin(), waiting_.end(), [](const auto& d) { return !d.lost; });
      if (waiting_.empty() || clock_.now() >= (sure ? end_ : lost_until)) return ok();
      if (read.value()) continue;
      if (auto waited = wait(); !waited) return waited;
    }
  }

  [[nodiscard]] const std::vector<StoppedDevice>& waiting() const noexcept { return waiting_; }
  StopReport report() { return {std::move(ended_), std::move(waiting_)}; }

 private:
  void move_ended(const std::function<void(const std::string&)>& say) {
    const auto still = std::stable_partition(waiting_.begin(), waiting_.end(), [&](const auto& device) {
      return !has_ended(topic_.fold(), device);
    });
    for (auto it = still; it != waiting_.end(); ++it) {
      say(it->id + " has stopped");
      ended_.push_back(*it);
    }
    waiting_.erase(still, waiting_.end());
  }
  Status wait() const {
    if (interrupted_.load() > 0)
      return Error{ErrorCode::cancelled, "interrupted; devices that have read the STOP still stop"};
    pause_ms(looking_step_ms);
    return ok();
  }

  ControlTopic& topic_;
  const RealClock clock_;
  const TimePoint end_;
  const StopRequest& interrupted_;
  std::vector<StoppedDevice> waiting_;
  std::vector<StoppedDevice> ended_;
};

}  // namespace

bool StopReport::complete() const {
  return std::all_of(silent.begin(), silent.end(), [](const auto& device) { return device.lost; });
}

std::vector<StoppedDevice> devices_to_stop(const Fold& fold) {
  std::vector<StoppedDevice> devices;
  for (const auto& [id, device] : fold.devices) {
    const auto member = fold.view.sessions.find(id);
    const bool in_view = member != fold.view.sessions.end() && member->second == device.session;
    // May not have reached READY yet. A view that is closed after its HELLO has gone on without it.
    const bool since_view =
        fold.view.members.empty() || device.session > static_cast<std::int64_t>(fold.view.token);
    const bool starting = device.session >= fold.last_hello && since_view;
    if (!is_open(fold, device) || !(in_view || starting || is_ready(fold, device))) continue;
    devices.push_back({id, device.hello.host, device.hello.pid, device.session, is_lost(fold, device)});
  }
  return devices;
}

Result<StopReport> stop_job(ControlTopic& topic, Duration timeout, const StopRequest& interrupted,
                            const std::function<void(const std::string&)>& say) {
  if (auto read = topic.read_all(timeout); !read) return read.error();
  const auto left_behind = devices_left_behind(topic.fold());
  Stopping stopping(topic, RealClock().now() + timeout, interrupted);
  if (auto written = stopping.write(); !written) return written.error();
  if (stopping.waiting().empty()) {
    say("no device of job " + topic.job() + " was running");
  } else {
    say("job " + topic.job() + " is stopping; waiting for " + names_of(stopping.waiting()));
  }
  if (!left_behind.empty())
    say(fmt::format("not waiting for {}: the group has gone on without {}", fmt::join(left_behind, ", "),
                    left_behind.size() == 1 ? "it" : "them"));
  if (auto watched = stopping.watch(say); !watched) return watched.error();
  return stopping.report();
}

}  // namespace rivulet::runtime::cli
