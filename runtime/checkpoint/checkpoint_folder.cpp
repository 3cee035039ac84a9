#include "runtime/checkpoint/checkpoint_folder.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <set>
#include <system_error>

#include "runtime/checkpoint/damaged_image.h"
#include "runtime/process/whole_file.h"
#include "sync/policy/divergence.h"

namespace rivulet::runtime {
namespace {

constexpr const char* suffix = ".ckpt";
constexpr const char* private_suffix = ".private";

/// Parses "3.500" followed by `end` and nothing else.
std::optional<Stamp> stamp_of(std::string_view text, std::string_view end) {
  Stamp stamp;
  const char* const first = text.data();
  const char* const last = first + text.size();
  const auto [dot, no_lineage] = std::from_chars(first, last, stamp.lineage);
  if (no_lineage != std::errc{} || dot == last || *dot != '.') return std::nullopt;
  const auto [rest, no_step] = std::from_chars(dot + 1, last, stamp.step);
  if (no_step != std::errc{} || std::string_view(rest, static_cast<std::size_t>(last - rest)) != end)
    return std::nullopt;
  return stamp;
}

std::optional<Stamp> stamp_in_name(const std::string& path) {
  return stamp_of(std::string_view(path).substr(path.rfind('/') + 1), suffix);
}

/// Reads a file's head. Checks that the file has the length in its head.
Result<CheckpointEntry> entry_of(const FileOperations& files, const std::string& path) {
  std::array<std::byte, job_bytes_max> bytes{};
  std::uint64_t length = 0;
  std::size_t got = 0;
  const int fd = files.open(path, O_RDONLY | O_NONBLOCK);  // must not block on a pipe
  if (fd >= 0) {
    length = files.size(fd).value_or(0);
    got = static_cast<std::size_t>(std::max<ssize_t>(files.read(fd, bytes), 0));
    files.close(fd);
  }
  const auto beginning = std::span(bytes).first(got);
  const auto head = decode_state_head(beginning.first(std::min(got, state_head_bytes)), length);
  if (!head) return head.error();
  const StateHead& h = head.value();
  return CheckpointEntry{path, h.stamp, h.digest, h.bytes, job_in(beginning).value_or("")};
}

/// Loads a file that is intact, belongs to this job and model, and matches its digest.
std::optional<DecodedState> load(const FileOperations& files, const std::string& path,
                                 const Expected& expected, std::vector<std::string>& problems) {
  const auto file = read_whole_file(path, state_image_max(expected.layout), files);
  if (!file) {
    problems.push_back(file.error().message);
    return std::nullopt;
  }
  auto decoded = decode_state(file.value(), expected);
  const Status good = decoded ? check_digest(decoded.value(), expected.device) : Status(decoded.error());
  if (good) return std::move(decoded).value();
  problems.push_back(fmt::format("{}: {}", path, good.error().message));
  return std::nullopt;
}

}  // namespace

std::string free_folder(const std::string& folder, const std::string& prefix, const FileOperations& files) {
  const auto taken = files.files_in(folder);
  for (int n = 1;; ++n) {
    std::string path = fmt::format("{}/{}-{}", folder, prefix, n);
    if (std::ranges::find(taken, path) == taken.end() && files.files_in(path).empty()) return path;
  }
}

void CheckpointFolder::sweep() {
  const auto all = files_->files_in(path_);
  for (const auto& path : all) {
    const bool orphan = path.ends_with(private_suffix) &&
                        std::ranges::count(all, path.substr(0, path.rfind(private_suffix)) + suffix) == 0;
    if (orphan || path.ends_with(".tmp")) files_->remove(path);
  }
}

std::vector<CheckpointEntry> CheckpointFolder::list(std::vector<std::string>& problems) const {
  std::vector<CheckpointEntry> all;
  for (const auto& path : files_->files_in(path_)) {
    if (!path.ends_with(suffix)) continue;
    if (auto entry = entry_of(*files_, path); entry)
      all.push_back(std::move(entry).value());
    else
      problems.push_back(fmt::format("{}: {}", path, entry.error().message));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.stamp > b.stamp; });
  return all;
}

std::optional<CheckpointFolder::Found> CheckpointFolder::newest(const Expected& expected,
                                                                std::vector<std::string>& problems) const {
  for (const auto& entry : list(problems)) {
    auto usable = load(*files_, entry.path, expected, problems);
    if (!usable) continue;
    const Stamp stamp = usable->state.stamp;
    return Found{std::move(*usable), entry.path, newest_damaged(stamp, expected)};
  }
  return std::nullopt;
}

std::optional<std::string> CheckpointFolder::misfit(const Expected& expected) const {
  for (const auto& [stamp, path] : newer_than({})) {
    const auto file = read_whole_file(path, state_image_max(expected.layout), *files_);
    if (!file) continue;
    const auto decoded = decode_state(file.value(), expected);
    // An intact file that cannot be decoded comes from another version of this program.
    if (!decoded && (decoded.error().code == ErrorCode::invalid_config || is_whole(file.value())))
      return fmt::format("{}: {}", path, decoded.error().message);
  }
  return std::nullopt;
}

/// Returns files sorted by the stamp in their name, newest first, since heads may be damaged, too.
std::vector<std::pair<Stamp, std::string>> CheckpointFolder::newer_than(const Stamp& stamp) const {
  std::vector<std::pair<Stamp, std::string>> newer;
  for (const auto& path : files_->files_in(path_))
    if (const auto of = stamp_in_name(path); of && *of > stamp) newer.emplace_back(*of, path);
  std::sort(newer.rbegin(), newer.rend());
  return newer;
}

/// Considers only files whose content changed. A file written for another program version, model or job, or
/// one that the disk cannot read now, may still be intact.
std::optional<DamagedCheckpoint> CheckpointFolder::newest_damaged(const Stamp& above,
                                                                  const Expected& expected) const {
  for (const auto& [stamp, path] : newer_than(above)) {
    const auto file = read_whole_file(path, state_image_max(expected.layout), *files_);
    if (file && !is_whole(file.value())) return DamagedCheckpoint{path, stamp, rows_in_damaged(file.value())};
  }
  return std::nullopt;
}

Result<CheckpointFolder::GoneBack> CheckpointFolder::roll_back(const Stamp& to) {
  const std::string text = text_of(to) + "\n";
  if (auto noted = write_whole_file(note(), std::as_bytes(std::span(text)), *files_); !noted)
    return noted.error();
  auto newer = newer_than(to);
  std::reverse(newer.begin(), newer.end());
  GoneBack gone;
  if (newer.empty()) return gone;
  gone.folder = free_folder(path_, "newer", *files_);
  if (files_->make_folders(gone.folder) != 0) return file_trouble("make", gone.folder);
  const auto synced = [&] {
    return sync_folder(gone.folder, *files_) == 0 && sync_folder(path_, *files_) == 0;
  };
  for (const auto& [stamp, path] : newer) {
    // The newest moves last, after the other moves are durable: it is the file a device would load.
    if (stamp == newer.back().first && !synced()) return file_trouble("sync", gone.folder);
    gone.aside.push_back(gone.folder + path.substr(path.rfind('/')));
    if (files_->rename(path, gone.aside.back()) != 0) return file_trouble("move", path);
  }
  if (!synced()) return file_trouble("sync", gone.folder);
  return gone;
}

std::optional<Stamp> CheckpointFolder::rollback_requested() const {
  constexpr std::size_t note_bytes_max = 64;
  const auto text = read_whole_file(note(), note_bytes_max, *files_);
  if (!text) return std::nullopt;
  return stamp_of({reinterpret_cast<const char*>(text.value().data()), text.value().size()}, "\n");
}

void CheckpointFolder::forget_going_back() {
  files_->remove(note());
}

Result<CheckpointFolder::Written> CheckpointFolder::write(const StateOwner& owner, const AgreedState& state,
                                                          const Digest& digest) {
  if (files_->make_folders(path_) != 0) {
    const bool broken = errno == EIO;
    return Error{broken ? ErrorCode::io : ErrorCode::unavailable,
                 fmt::format("cannot create {}: {}", path_, std::generic_category().message(errno))};
  }
  const auto image = encode_state(owner, state, digest);
  const auto path = path_of(state.stamp, suffix);
  if (auto written = write_whole_file(path, image, *files_); !written) return written.error();
  return Written{hex_of(hash_in(image)), image.size()};
}

Status CheckpointFolder::write_private(const PrivatePart& part) {
  if (files_->make_folders(path_) != 0) return file_trouble("make", path_);
  return write_whole_file(path_of(part.stamp, private_suffix), encode_private(part), *files_);
}

void CheckpointFolder::remove_private(const Stamp& stamp) {
  files_->remove(path_of(stamp, private_suffix));
}

std::optional<PrivatePart> CheckpointFolder::private_part(const Stamp& stamp,
                                                          const devices::ModelLayout& layout,
                                                          std::vector<std::string>& problems) const {
  const auto path = path_of(stamp, private_suffix);
  const auto all = files_->files_in(path_);
  if (std::ranges::count(all, path) == 0) return std::nullopt;
  const auto file = read_whole_file(path, private_part_max(layout.parameters, layout.scalar), *files_);
  if (!file) {
    problems.push_back(file.error().message);
    return std::nullopt;
  }
  auto part = decode_private(file.value(), layout.parameters, layout.scalar);
  if (part && part.value().stamp == stamp) return std::move(part).value();
  problems.push_back(
      fmt::format("{}: {}", path, part ? "belongs to a different state" : part.error().message));
  return std::nullopt;
}

/// Removes an image and its private part.
int CheckpointFolder::remove(const CheckpointEntry& entry) const {
  const int removed = files_->remove(entry.path);
  if (removed == 0) files_->remove(path_of(entry.stamp, private_suffix));
  return removed;
}

Status CheckpointFolder::write_note(const Stamp& stamp, const CheckpointNote& note) {
  CheckpointNotes all = notes();
  all.insert_or_assign(stamp, note);
  const std::string text = text_of(all);
  return write_whole_file(notes_file(), std::as_bytes(std::span(text)), *files_);
}

CheckpointNotes CheckpointFolder::notes() const {
  const auto files = files_->files_in(path_);
  if (std::ranges::count(files, notes_file()) == 0) return {};
  const auto text = read_whole_file(notes_file(), notes_bytes_max, *files_);
  if (!text) return {};
  CheckpointNotes all = notes_in({reinterpret_cast<const char*>(text.value().data()), text.value().size()});
  std::set<Stamp> there;
  for (const auto& path : files)
    if (const auto of = stamp_in_name(path)) there.insert(*of);
  std::erase_if(all, [&](const auto& one) { return !there.contains(one.first); });
  return all;
}

void CheckpointFolder::prune(std::size_t keep, const Stamp& committed, std::string_view job,
                             std::span<const Stamp> wanted) {
  std::vector<std::string> problems;
  auto all = list(problems);
  std::erase_if(all, [&](const CheckpointEntry& entry) { return entry.job != job; });
  const auto best = best_of(notes());
  const auto remove_old = [&](const CheckpointEntry& entry) {
    if (entry.stamp != best && std::ranges::count(wanted, entry.stamp) == 0) remove(entry);
  };
  const auto last = std::find_if(all.begin(), all.end(), [&](const auto& e) { return e.stamp <= committed; });
  for (std::size_t i = std::max(keep, uncommitted_max); i < all.size(); ++i)
    if (all[i].stamp > committed) remove_old(all[i]);
  if (last == all.end()) return;
  for (auto i = std::max(keep, static_cast<std::size_t>(last - all.begin()) + 1); i < all.size(); ++i)
    remove_old(all[i]);
}

std::optional<CheckpointEntry> CheckpointFolder::foreign(std::string_view job) const {
  std::vector<std::string> problems;
  for (auto& entry : list(problems))
    if (!entry.job.empty() && entry.job != job) return std::move(entry);
  return std::nullopt;
}

CheckpointFolder::Pruned CheckpointFolder::prune_checked(std::size_t keep, const Expected& expected,
                                                         std::vector<std::string>& problems) const {
  Pruned pruned;
  const auto best = best_of(notes());
  std::size_t newest = 0;
  Stamp good;
  for (auto& entry : list(problems)) {
    const auto usable = load(*files_, entry.path, expected, problems);
    if (!usable) continue;
    if (newest == 0) good = sync::policy::Divergence::good(usable->state.controllers);
    if (newest++ < std::max<std::size_t>(keep, 1) || entry.stamp == best || entry.stamp == good) {
      pruned.kept.push_back(std::move(entry));
      continue;
    }
    if (remove(entry) != 0)
      problems.push_back(
          fmt::format("{} cannot be deleted: {}", entry.path, std::generic_category().message(errno)));
    else
      pruned.removed.push_back(std::move(entry));
  }
  return pruned;
}

}  // namespace rivulet::runtime
