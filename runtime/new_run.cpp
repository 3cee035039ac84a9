#include "runtime/new_run.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "runtime/checkpoint_folder.h"

namespace rivulet::runtime {
namespace {

namespace fs = std::filesystem;
using sync::membership::NewRun;

constexpr Duration reading_deadline = std::chrono::seconds(30);

Stamp newest_in(const std::string& folder) {
  std::vector<std::string> complaints;  // said when the device loads them
  const auto all = CheckpointFolder(folder).list(complaints);
  return all.empty() ? Stamp{} : all.front().stamp;
}

Error cannot(const std::string& what, const fs::path& path, const std::error_code& error) {
  return {ErrorCode::io, fmt::format("cannot {} {}: {}", what, path.string(), error.message())};
}

}  // namespace

bool begins_empty(const sync::membership::Fold& fold, const std::string& device, const Stamp& newest) {
  if (new_run_by(fold, device) == NewRun::begins) return true;
  return newest.lineage <= fold.run.views_before || newest.lineage > fold.view.number;
}

Result<std::string> keep_aside(const std::string& folder) {
  std::vector<std::string> complaints;
  const auto all = CheckpointFolder(folder).list(complaints);
  if (all.empty()) return std::string();
  std::error_code error;
  fs::path aside;
  for (int n = 1; aside.empty() || fs::exists(aside, error); ++n)
    aside = fs::path(folder) / fmt::format("before-{}", n);
  fs::create_directories(aside, error);
  if (error) return cannot("make", aside, error);
  for (const auto& entry : all) {
    fs::rename(entry.path, aside / fs::path(entry.path).filename(), error);
    if (error) return cannot("move", entry.path, error);
  }
  return aside.string();
}

Status prepare_new_run(const Config& config, const std::string& folder, Logger& log,
                       const ControlTopic::Pause& pause) {
  auto topic = ControlTopic::open(config, true, pause);
  if (!topic) return topic.error();
  if (auto read = topic.value().read_all(reading_deadline); !read) return read;
  const auto& fold = topic.value().fold();
  const std::string& self = config.device.id;
  if (new_run_by(fold, self) == NewRun::refused)
    return Error{ErrorCode::invalid_config, why_no_new_run(fold, config.job.name, self)};
  if (!begins_empty(fold, self, newest_in(folder))) {
    log.write(Level::warn, "--new-run changes nothing: this device is in that run already and goes on",
              {{"run", std::to_string(fold.run.number)}});
    return ok();
  }
  const auto aside = keep_aside(folder);
  if (!aside) return aside.error();
  if (!aside.value().empty())
    log.write(Level::info, "starting over, the old checkpoints are kept", {{"in", aside.value()}});
  return ok();
}

}  // namespace rivulet::runtime
