// Faults by the kill harness, and their timing.
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "runtime/decisions/decision_files.h"
#include "tests/support/kill_harness.h"
#include "tests/support/wait.h"

namespace rivulet::testing {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// Polls without sleeping: a moment may last only a millisecond.
template <class Done>
bool spin_until(Done done, Duration deadline) {
  const RealClock clock;
  const TimePoint end = clock.now() + deadline_slack * deadline;
  while (!done()) {
    if (clock.now() >= end) return false;
    std::this_thread::sleep_for(50us);
  }
  return true;
}

bool has_temporary(const std::string& folder) {
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
       it.increment(error))
    if (it->path().extension() == ".tmp") return true;
  return false;
}

}  // namespace

bool KillGroup::wait_for(int device, Moment moment, Rng& rng, Duration deadline) {
  const KillPage& page = *at(device).page;
  switch (moment) {
    case Moment::any: return true;
    case Moment::idle: return spin_until([&] { return page.phase == KillPage::Phase::idle; }, deadline);
    case Moment::compute: return spin_until([&] { return page.phase == KillPage::Phase::compute; }, deadline);
    case Moment::checkpoint: return wait_for_checkpoint(device, deadline);
    case Moment::payload: break;
  }
  const double share = 0.1 + 0.6 * rng.uniform();
  return spin_until(
      [&] {
        const auto past = static_cast<std::uint64_t>(share * static_cast<double>(page.total));
        return page.inside_payload() && page.sent > past;
      },
      deadline);
}

/// A checkpoint is written under a temporary name, whose appearance is the start.
bool KillGroup::wait_for_checkpoint(int device, Duration deadline) {
  const std::string folder = checkpoints(device);
  const int events = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  const auto watching = [&] { return ::inotify_add_watch(events, folder.c_str(), IN_CREATE) >= 0; };
  pollfd created{events, POLLIN, 0};
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(deadline).count();
  const bool came =
      events >= 0 && wait_until(watching, deadline) && ::poll(&created, 1, static_cast<int>(ms)) == 1;
  if (events >= 0) ::close(events);
  return came;
}

bool KillGroup::kill(int device) {
  process(device).send_signal(SIGKILL);
  REQUIRE(process(device).wait(10s));
  const bool inside = page(device).inside_payload();
  inside_payload_ += inside ? 1 : 0;
  inside_checkpoint_ += has_temporary(checkpoints(device)) ? 1 : 0;
  return inside;
}

bool KillGroup::kill_at(int device, Moment moment, Rng& rng, Duration deadline) {
  if (!wait_for(device, moment, rng, deadline)) return false;
  kill(device);
  return true;
}

void KillGroup::kill_all() {
  for (auto& device : all_) device.process->send_signal(SIGKILL);
  for (int i = 0; i < options_.devices; ++i) kill(i);
}

bool KillGroup::is_at(int device, Moment moment) {
  switch (moment) {
    case Moment::any: return true;
    case Moment::idle: return page(device).phase == KillPage::Phase::idle;
    case Moment::compute: return page(device).phase == KillPage::Phase::compute;
    case Moment::payload: return page(device).inside_payload();
    case Moment::checkpoint: return has_temporary(checkpoints(device));
  }
  return false;
}

// Disconnecting takes longer than some phases, so the device is stopped first.
bool KillGroup::hit(int device, Moment moment, Blow blow, Rng& rng, Duration deadline) {
  const RealClock clock;
  const TimePoint end = clock.now() + deadline;
  const auto stands_still = [&] {
    const auto stats = process(device).stats();
    return stats && stats->state == 'T';
  };
  while (wait_for(device, moment, rng, end - clock.now())) {
    stop(device);
    REQUIRE(spin_until(stands_still, 5s));
    if (!is_at(device, moment)) {
      resume(device);
      continue;
    }
    if (blow == Blow::kill) kill(device);
    if (blow == Blow::cut_off) cut_off(device);
    if (blow == Blow::cut_off) resume(device);
    return true;
  }
  return false;
}

void KillGroup::mend(int device, Blow blow) {
  switch (blow) {
    case Blow::kill: return start(device);
    case Blow::stop: return resume(device);
    case Blow::cut_off: return plug_in(device);
  }
}

void KillGroup::wipe(int device) {
  const fs::path kept = folder_.path() / ("wiped-" + std::to_string(kept_of_wiped_.size()));
  fs::create_directories(kept);
  for (const auto& file : runtime::decision_files(directory(device) + "/decisions.jsonl"))
    fs::copy_file(file.path, kept / fs::path(file.path).filename());
  kept_of_wiped_.push_back(kept.string());
  fs::remove_all(directory(device));
}

void KillGroup::stop(int device) {
  process(device).send_signal(SIGSTOP);
}

void KillGroup::resume(int device) {
  process(device).send_signal(SIGCONT);
}

void KillGroup::cut_off(int device) {
  REQUIRE(network_ != nullptr);
  REQUIRE(network_->set_connected(device, false));
}

void KillGroup::cut_one_way(int device, Network::Direction direction) {
  REQUIRE(network_ != nullptr);
  REQUIRE(network_->cut(device, direction));
}

void KillGroup::mend_one_way(int device) {
  REQUIRE(network_ != nullptr);
  REQUIRE(network_->set_rate(device, options_.bits_per_second));
}

void KillGroup::plug_in(int device) {
  REQUIRE(network_ != nullptr);
  REQUIRE(network_->set_connected(device, true));
}

}  // namespace rivulet::testing
