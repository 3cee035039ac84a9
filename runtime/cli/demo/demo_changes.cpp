#include <fmt/format.h>
#include <signal.h>

#include "runtime/cli/demo/demo.h"

// Devices of an elastic demo that die, join and leave.
namespace rivulet::runtime::cli {

Status Demo::change_group() {
  if (!script_) return ok();
  if (const auto change = script_->measure(view_)) print(words_of_change(*change));
  switch (script_->next(view_)) {
    case ElasticScript::Act::none: break;
    case ElasticScript::Act::kill: end_device(plan_.elastic->killed, SIGKILL); break;
    case ElasticScript::Act::add: return add_device(plan_.elastic->added);
    case ElasticScript::Act::stop: end_device(plan_.elastic->stopped, SIGTERM); break;
  }
  return ok();
}

void Demo::end_device(std::size_t i, int signal) {
  lives_[i].intended_end = true;
  devices_[i].signal(signal);
  view_.devices[i].state = signal == SIGKILL ? "killed" : "stopping";
  view_.devices[i].phrase.clear();
  print(signal == SIGKILL
            ? fmt::format("pulling the plug of {}: kill -9 {}", devices_[i].name(), devices_[i].pid())
            : fmt::format("stopping {}: kill {}", devices_[i].name(), devices_[i].pid()));
}

/// The newcomer takes over the partition of the killed device.
Status Demo::add_device(std::size_t i) {
  view_.devices.emplace_back();
  view_.devices[i].id = device_name(i);
  if (auto status = start_device(i, seconds_left()); !status) return status;
  print(fmt::format("adding {} (pid {}), which takes the partition of {}", devices_[i].name(),
                    devices_[i].pid(), device_name(plan_.elastic->killed)));
  return ok();
}

}  // namespace rivulet::runtime::cli
