#include "runtime/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "runtime/whole_file.h"

namespace rivulet::runtime {
namespace {

namespace fs = std::filesystem;

constexpr const char* suffix = ".ckpt";

/// Regular files only: a pipe of such a name must not hold us.
std::vector<fs::path> files_in(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    std::error_code gone;
    if (at->is_regular_file(gone)) files.push_back(at->path());
  }
  return files;
}

/// Of a file that is as long as it says.
Result<StateHead> head_of(const fs::path& file) {
  std::array<char, state_head_bytes> bytes{};
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  const auto length = static_cast<std::uint64_t>(in.tellg());
  in.seekg(0);
  in.read(bytes.data(), bytes.size());
  return decode_state_head(std::as_bytes(std::span(bytes)).first(static_cast<std::size_t>(in.gcount())),
                           length);
}

/// A file that is whole, of this job and model, and whose numbers have the digest that it claims.
std::optional<DecodedState> load(const std::string& path, const Expected& expected,
                                 std::vector<std::string>& complaints) {
  const auto file = read_whole_file(path, state_image_max(expected.layout));
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
  std::error_code error;
  for (const auto& path : files_in(path_))
    if (path.extension() == ".tmp") fs::remove(path, error);
}

std::vector<CheckpointEntry> CheckpointFolder::list(std::vector<std::string>& complaints) const {
  std::vector<CheckpointEntry> all;
  for (const auto& path : files_in(path_)) {
    if (path.extension() != suffix) continue;
    if (const auto head = head_of(path); head)
      all.push_back({path.string(), head.value().stamp, head.value().digest, head.value().bytes});
    else
      complaints.push_back(fmt::format("{}: {}", path.string(), head.error().message));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.stamp > b.stamp; });
  return all;
}

std::optional<DecodedState> CheckpointFolder::newest(const Expected& expected,
                                                     std::vector<std::string>& complaints) const {
  for (const auto& entry : list(complaints))
    if (auto usable = load(entry.path, expected, complaints)) return usable;
  return std::nullopt;
}

Result<CheckpointFolder::Written> CheckpointFolder::write(const StateOwner& owner, const AgreedState& state,
                                                          const Digest& digest) {
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) {
    const bool broken = error == std::errc::io_error;
    return Error{broken ? ErrorCode::io : ErrorCode::unavailable,
                 fmt::format("cannot make {}: {}", path_, error.message())};
  }
  const auto image = encode_state(owner, state, digest);
  const auto path = (fs::path(path_) / (text_of(state.stamp) + suffix)).string();
  if (auto written = write_whole_file(path, image, *files_); !written) return written.error();
  return Written{hex_of(hash_in(image)), image.size()};
}

void CheckpointFolder::prune(std::size_t keep, const Stamp& committed) {
  std::vector<std::string> complaints;
  const auto all = list(complaints);
  const auto last = std::find_if(all.begin(), all.end(), [&](const auto& e) { return e.stamp <= committed; });
  std::error_code error;
  for (std::size_t i = std::max(keep, uncommitted_max); i < all.size(); ++i)
    if (all[i].stamp > committed) fs::remove(all[i].path, error);
  if (last == all.end()) return;
  for (auto i = std::max(keep, static_cast<std::size_t>(last - all.begin()) + 1); i < all.size(); ++i)
    fs::remove(all[i].path, error);
}

CheckpointFolder::Pruned CheckpointFolder::prune_checked(std::size_t keep, const Expected& expected,
                                                         std::vector<std::string>& complaints) const {
  Pruned pruned;
  for (auto& entry : list(complaints)) {
    if (!load(entry.path, expected, complaints)) continue;
    if (pruned.kept.size() < std::max<std::size_t>(keep, 1)) {
      pruned.kept.push_back(std::move(entry));
      continue;
    }
    std::error_code error;
    if (fs::remove(entry.path, error); error)
      complaints.push_back(fmt::format("{} cannot be deleted: {}", entry.path, error.message()));
    else
      pruned.removed.push_back(std::move(entry));
  }
  return pruned;
}

}  // namespace rivulet::runtime
