#include "runtime/checkpoint_folder.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "runtime/whole_file.h"

namespace rivulet::runtime {
namespace {

constexpr const char* suffix = ".ckpt";

/// Of a file that is as long as it says.
Result<StateHead> head_of(const FileOperations& files, const std::string& path) {
  const int fd = files.open(path, O_RDONLY | O_NONBLOCK);  // a pipe in its place must not hold us
  if (fd < 0) return decode_state_head({}, 0);
  std::array<std::byte, state_head_bytes> bytes{};
  const std::uint64_t length = files.size(fd).value_or(0);
  const auto got = static_cast<std::size_t>(std::max<ssize_t>(files.read(fd, bytes), 0));
  files.close(fd);
  return decode_state_head(std::span(bytes).first(got), length);
}

/// A file that is whole, of this job and model, and whose numbers have the digest that it claims.
std::optional<DecodedState> load(const FileOperations& files, const std::string& path,
                                 const Expected& expected, std::vector<std::string>& complaints) {
  const auto file = read_whole_file(path, state_image_max(expected.layout), files);
  if (!file) {
    complaints.push_back(file.error().message);
    return std::nullopt;
  }
  auto decoded = decode_state(file.value(), expected);
  const Status good = decoded ? check_digest(decoded.value(), expected.device) : Status(decoded.error());
  if (good) return std::move(decoded).value();
  complaints.push_back(fmt::format("{}: {}", path, good.error().message));
  return std::nullopt;
}

}  // namespace

void CheckpointFolder::sweep() {
  for (const auto& path : files_->files_in(path_))
    if (path.ends_with(".tmp")) files_->remove(path);
}

std::vector<CheckpointEntry> CheckpointFolder::list(std::vector<std::string>& complaints) const {
  std::vector<CheckpointEntry> all;
  for (const auto& path : files_->files_in(path_)) {
    if (!path.ends_with(suffix)) continue;
    if (const auto head = head_of(*files_, path); head)
      all.push_back({path, head.value().stamp, head.value().digest, head.value().bytes});
    else
      complaints.push_back(fmt::format("{}: {}", path, head.error().message));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.stamp > b.stamp; });
  return all;
}

std::optional<DecodedState> CheckpointFolder::newest(const Expected& expected,
                                                     std::vector<std::string>& complaints) const {
  for (const auto& entry : list(complaints))
    if (auto usable = load(*files_, entry.path, expected, complaints)) return usable;
  return std::nullopt;
}

Result<CheckpointFolder::Written> CheckpointFolder::write(const StateOwner& owner, const AgreedState& state,
                                                          const Digest& digest) {
  if (files_->make_folders(path_) != 0) {
    const bool broken = errno == EIO;
    return Error{broken ? ErrorCode::io : ErrorCode::unavailable,
                 fmt::format("cannot make {}: {}", path_, std::generic_category().message(errno))};
  }
  const auto image = encode_state(owner, state, digest);
  const auto path = (std::filesystem::path(path_) / (text_of(state.stamp) + suffix)).string();
  if (auto written = write_whole_file(path, image, *files_); !written) return written.error();
  return Written{hex_of(hash_in(image)), image.size()};
}

void CheckpointFolder::prune(std::size_t keep, const Stamp& committed) {
  std::vector<std::string> complaints;
  const auto all = list(complaints);
  const auto last = std::find_if(all.begin(), all.end(), [&](const auto& e) { return e.stamp <= committed; });
  for (std::size_t i = std::max(keep, uncommitted_max); i < all.size(); ++i)
    if (all[i].stamp > committed) files_->remove(all[i].path);
  if (last == all.end()) return;
  for (auto i = std::max(keep, static_cast<std::size_t>(last - all.begin()) + 1); i < all.size(); ++i)
    files_->remove(all[i].path);
}

CheckpointFolder::Pruned CheckpointFolder::prune_checked(std::size_t keep, const Expected& expected,
                                                         std::vector<std::string>& complaints) const {
  Pruned pruned;
  for (auto& entry : list(complaints)) {
    if (!load(*files_, entry.path, expected, complaints)) continue;
    if (pruned.kept.size() < std::max<std::size_t>(keep, 1)) {
      pruned.kept.push_back(std::move(entry));
      continue;
    }
    if (files_->remove(entry.path) != 0)
      complaints.push_back(
          fmt::format("{} cannot be deleted: {}", entry.path, std::generic_category().message(errno)));
    else
      pruned.removed.push_back(std::move(entry));
  }
  return pruned;
}

}  // namespace rivulet::runtime
