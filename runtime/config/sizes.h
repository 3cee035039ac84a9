#pragma once
#include <array>
#include <string>
#include <string_view>

#include "core/group_sizes.h"
#include "runtime/config/layers.h"

/// Sizes of the group (private to config/): job.devices as a number, a range or a table.
namespace rivulet::runtime {

/// Keys of the table. They appear only as a part of job.devices to users and other devices.
inline constexpr std::array size_keys{"job.devices.min", "job.devices.wanted", "job.devices.max"};

/// Whether the text is a number or a range: "4", "2-16".
bool is_group_size(std::string_view text);
/// Whether the text is a number, or empty: not set.
bool is_device_count(std::string_view text);
inline constexpr std::string_view device_count_form = "a number from 1 to 10000";
inline constexpr std::string_view group_size_form = "a number from 1 to 10000, or a range such as \"2-16\"";

/// Sets config.job.devices. `settings`: every key with its value; `written`: the keys that were set. A range
/// or a table without `wanted` aims at its maximum. Reports sizes that do not ascend or conflict with
/// sync.on_peer_loss.
void resolve_sizes(Config& config, const SettingsByKey& settings, const SettingsByKey& written,
                   Problems& problems);

}  // namespace rivulet::runtime
