#include "runtime/node/new_run.h"

#include <fmt/format.h>

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/process/whole_file.h"

namespace rivulet::runtime {
namespace {

using sync::membership::NewRun;

constexpr Duration reading_deadline = std::chrono::seconds(30);

/// Lists checkpoints, the newest first.
std::vector<CheckpointEntry> checkpoints_in(const std::string& folder, const FileOperations& files) {
  std::vector<std::string> problems;  // logged later, when the device loads them
  return CheckpointFolder(folder, files).list(problems);
}

Stamp newest_in(const std::string& folder, const FileOperations& files) {
  const auto all = checkpoints_in(folder, files);
  return all.empty() ? Stamp{} : all.front().stamp;
}

/// Moves the checkpoints aside. Returns the new directory; empty if there were none.
Result<std::string> move_aside(const std::vector<CheckpointEntry>& entries, const std::string& folder,
                               const FileOperations& files) {
  if (entries.empty()) return std::string();
  const std::string aside = free_folder(folder, "before", files);
  if (files.make_folders(aside) != 0) return file_trouble("make", aside);
  for (const auto& entry : entries)
    if (files.rename(entry.path, aside + entry.path.substr(entry.path.rfind('/'))) != 0)
      return file_trouble("move", entry.path);
  // Otherwise a power loss could restore them into a run to which they do not belong.
  for (const std::string& changed : {aside, folder})
    if (sync_folder(changed, files) != 0) return file_trouble("sync", changed);
  return aside;
}

/// Rejects --new-run for a run that has begun. First moves checkpoints of an earlier run aside: a device may
/// return with checkpoints that it could not read when the run began. The group does not accept them, and
/// they must not replace a damaged newer checkpoint.
Status refuse(const sync::membership::Fold& fold, const Config& config, const std::string& folder,
              const FileOperations& files) {
  auto earlier = checkpoints_in(folder, files);
  std::erase_if(earlier, [&](const auto& entry) { return is_of_run(fold, entry.stamp); });
  if (earlier.empty())
    return Error{ErrorCode::invalid_config, why_no_new_run(fold, config.job.name, config.device.id)};
  const auto aside = move_aside(earlier, folder, files);
  if (!aside) return aside.error();
  return Error{
      ErrorCode::invalid_config,
      fmt::format(
          "run {} of job {} has already begun. State {} belongs to an earlier run and was moved to {}: "
          "start this device without --new-run",
          fold.run.number, config.job.name, text_of(earlier.front().stamp), aside.value())};
}

}  // namespace

bool begins_empty(const sync::membership::Fold& fold, const std::string& device, const Stamp& newest) {
  if (new_run_by(fold, device) == NewRun::begins) return true;
  return newest.lineage <= fold.run.views_before || newest.lineage > fold.view.number;
}

Result<std::string> keep_aside(const std::string& folder, const FileOperations& files) {
  return move_aside(checkpoints_in(folder, files), folder, files);
}

Status start_over(const sync::membership::Fold& fold, const Config& config, const std::string& folder,
                  Logger& log, const FileOperations& files) {
  const std::string& self = config.device.id;
  if (new_run_by(fold, self) == NewRun::refused) return refuse(fold, config, folder, files);
  if (!begins_empty(fold, self, newest_in(folder, files))) {
    log.write(Level::warn, "--new-run has no effect: this device is already in that run and resumes it",
              {{"run", std::to_string(fold.run.number)}});
    return ok();
  }
  const auto aside = keep_aside(folder, files);
  if (!aside) return aside.error();
  if (!aside.value().empty())
    log.write(Level::info, "starting over; the old checkpoints are kept", {{"in", aside.value()}});
  return ok();
}

Status prepare_new_run(const Config& config, const std::string& folder, Logger& log,
                       const ControlTopic::Pause& pause) {
  auto topic = ControlTopic::open(config, true, pause);
  if (!topic) return topic.error();
  if (auto read = topic.value().read_all(reading_deadline); !read) return read;
  return start_over(topic.value().fold(), config, folder, log);
}

}  // namespace rivulet::runtime
