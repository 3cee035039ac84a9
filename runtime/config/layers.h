#pragma once
#include <map>

#include "runtime/config/key_rows.h"

/// The places a setting can come from, each in its own way of writing (private to config/).
namespace rivulet::runtime {

/// Later settings of a key replace earlier ones.
using SettingsByKey = std::map<std::string, Setting>;

void add_file(const std::string& path, SettingsByKey& settings, std::map<std::string, KeyPlace>& places,
              Problems& problems);
/// RIVULET_SET_<TABLE>__<KEY>, then RIVULET_<FLAG> of the flags of `rivulet run` that stand for a key.
void add_environment(const std::map<std::string, std::string>& environment, SettingsByKey& settings,
                     Problems& problems);
void add_sets(const std::vector<std::string>& sets, SettingsByKey& settings, Problems& problems);
void add_flags(const std::vector<std::pair<std::string, std::string>>& flags, SettingsByKey& settings,
               Problems& problems);

}  // namespace rivulet::runtime
