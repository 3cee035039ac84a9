#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "runtime/cli/demo/demo.h"

// Devices that exit before the demo does: killed ones are restarted.
namespace rivulet::runtime::cli {
namespace {

constexpr auto restart_pause = std::chrono::milliseconds(1500);  ///< long enough to show the others waiting
constexpr auto missed_after = std::chrono::seconds(1);           ///< maximum age of the others' pages
constexpr double least_seconds = 1;  ///< minimum training time if the whole group was lost at the end
constexpr double end_slack_s = 20;   ///< time for a device to exit after its training

}  // namespace

/// Detects exited devices and restarts those that are due.
Status Demo::tend_devices() {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    auto& life = lives_[i];
    if (!life.start_at) notice_end(i);
    if (!life.start_at || clock_.now() < *life.start_at) continue;
    if (auto status = start_again(i); !status) return status;
  }
  return ok();
}

void Demo::notice_end(std::size_t i) {
  auto& life = lives_[i];
  if (!devices_[i].exit_code()) return;
  if (!life.ended_at) life.ended_at = clock_.now();
  const auto end = end_of(i);
  const bool starts_again = fate_of(end) == Fate::start_again;
  if (!starts_again && !end.intended) return;
  view_.devices[i].state = end.signal ? "killed" : "left";
  view_.devices[i].phrase.clear();
  view_.devices[i].rows_per_s = 0;
  if (!starts_again) return;
  print(words_of_end(devices_[i].name(), devices_[i].pid(), end));
  life.start_at = clock_.now() + restart_pause;
}

Status Demo::start_again(std::size_t i) {
  auto& life = lives_[i];
  if (auto started = devices_[i].start_again(device_arguments(plan_, i, seconds_left())); !started)
    return started;
  life = {.restarts = life.restarts + 1, .ended_at = {}, .start_at = {}};
  last_start_ = clock_.now();
  trained_[i].clear();  // a new process counts from 0
  view_.devices[i].state = "starting";
  view_.devices[i].pid = devices_[i].pid();
  print(fmt::format("{} restarted as pid {}", devices_[i].name(), devices_[i].pid()));
  return ok();
}

DeviceEnd Demo::end_of(std::size_t i) {
  const auto& life = lives_[i];
  const bool for_a_while = life.ended_at && clock_.now() >= *life.ended_at + missed_after;
  return {.code = devices_[i].exit_code().value_or(0),
          .signal = devices_[i].ended_by_signal(),
          .intended = life.intended_end,
          .missed = for_a_while && others_wait(),
          .restarts = life.restarts};
}

/// Whether a running device waits in state forming. False if all devices exited together.
bool Demo::others_wait() {
  for (std::size_t i = 0; i < devices_.size(); ++i)
    if (!devices_[i].exit_code() && view_.devices[i].state == "forming") return true;
  return false;
}

double Demo::seconds_left() const {
  if (!formed_at_) return plan_.seconds;
  return std::max(least_seconds, plan_.seconds - to_seconds(clock_.now() - *formed_at_));
}

bool Demo::time_is_over() const {
  if (!formed_at_) return false;
  const auto end = std::max(*formed_at_ + from_seconds(plan_.seconds), last_start_);
  return clock_.now() > end + from_seconds(end_slack_s);
}

/// On the screen an event stays until the next one; in a pipe it is a separate line.
void Demo::print(const std::string& event) {
  view_.event = event;
  if (!painter_) show_ << event << '\n' << std::flush;
}

}  // namespace rivulet::runtime::cli
