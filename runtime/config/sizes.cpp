#include "runtime/config/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace rivulet::runtime {
namespace {

constexpr std::uint32_t most_devices = 10'000;
constexpr const char* devices_key = "job.devices";

std::optional<std::uint32_t> number_of(std::string_view text) {
  std::uint32_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  const bool fits = error == std::errc() && end == text.data() + text.size() && 1 <= n && n <= most_devices;
  return fits ? std::optional(n) : std::nullopt;
}

std::optional<GroupSizes> sizes_of(std::string_view text) {
  const auto dash = text.find('-');
  const auto least = number_of(text.substr(0, dash));
  if (dash == std::string_view::npos) return least ? std::optional(GroupSizes(*least)) : std::nullopt;
  const auto most = number_of(text.substr(dash + 1));
  if (!least || !most || *least > *most) return std::nullopt;
  return GroupSizes(*least, *most, *most);
}

/// Value of one size of a table; nullopt if it is not set.
std::optional<std::uint32_t> part_of(const SettingsByKey& settings, const SettingsByKey& written,
                                     const char* key) {
  const auto it = settings.find(key);
  if (!written.contains(key) || it == settings.end()) return std::nullopt;
  return number_of(*it->second.value.text());
}

void report(Problems& problems, const SettingsByKey& written, const char* key, std::string message,
            bool warning = false) {
  const auto it = written.find(key);
  Setting at = it != written.end() ? it->second : Setting{key, {}, {}, "", ""};
  if (at.value.place.line > 0) at.place = at.value.place;
  report_error(problems, at, std::move(message));
  problems.back().warning = warning;
}

/// The first key of the sizes that was set.
const char* first_written(const SettingsByKey& written) {
  for (const char* key : size_keys)
    if (written.contains(key)) return key;
  return devices_key;
}

}  // namespace

std::string text_of(const GroupSizes& sizes) {
  if (sizes.is_fixed()) return std::to_string(sizes.max);
  if (sizes.wanted == sizes.max) return fmt::format("{}-{}", sizes.min, sizes.max);
  return fmt::format("{{ min = {}, wanted = {}, max = {} }}", sizes.min, sizes.wanted, sizes.max);
}

bool is_group_size(std::string_view text) {
  return sizes_of(text).has_value();
}

bool is_device_count(std::string_view text) {
  return text.empty() || number_of(text).has_value();
}

void resolve_sizes(Config& config, const SettingsByKey& settings, const SettingsByKey& written,
                   Problems& problems) {
  GroupSizes sizes = sizes_of(*settings.at(devices_key).value.text()).value_or(config.job.devices);
  const auto min = part_of(settings, written, size_keys[0]);
  const auto wanted = part_of(settings, written, size_keys[1]);
  const auto max = part_of(settings, written, size_keys[2]);
  const bool table = min || wanted || max;
  if (table && !written.contains(devices_key)) {
    if (!max)
      return report(problems, written, first_written(written),
                    "'job.devices.max' is required: the largest number of devices");
    sizes = {std::min(config.checkpoint.quorum, wanted.value_or(*max)), *max, *max};
  }
  sizes = {min.value_or(sizes.min), wanted.value_or(sizes.wanted), max.value_or(sizes.max)};
  if (!sizes.is_valid())
    return report(
        problems, written, first_written(written),
        fmt::format("'job.devices' has min = {}, wanted = {} and max = {}, must ascend from at least 1",
                    sizes.min, sizes.wanted, sizes.max));
  if (config.sync.on_peer_loss == "shrink") {
    if (!sizes.is_fixed())
      return report(problems, written, "sync.on_peer_loss",
                    fmt::format("'sync.on_peer_loss' is 'shrink', which is for a fixed number of devices: "
                                "'job.devices' = {} changes its size anyway",
                                text_of(sizes)));
    sizes.min = std::min(config.checkpoint.quorum, sizes.max);
  }
  config.job.devices = sizes;
  const std::uint32_t quorum = std::min(config.checkpoint.quorum, sizes.max);
  if (sizes.min < quorum)
    report(problems, written, first_written(written),
           fmt::format(
               "'job.devices' has min = {}, below 'checkpoint.quorum' = {}: with fewer than {} devices the "
               "group trains, but commits no checkpoint",
               sizes.min, quorum, quorum),
           true);
}

}  // namespace rivulet::runtime
