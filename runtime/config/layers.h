#pragma once
#include <map>

#include "runtime/config/key_rows.h"

/// Readers of the sources of settings; each source has its own syntax (private to config/).
namespace rivulet::runtime {

/// A later setting of a key replaces an earlier one.
using SettingsByKey = std::map<std::string, Setting>;

void add_file(const std::string& path, SettingsByKey& settings, std::map<std::string, KeyPlace>& places,
              Problems& problems);
/// Adds the RIVULET_SET_<TABLE>__<KEY> variables, then RIVULET_<FLAG> for each flag of `rivulet run` that
/// sets a key.
void add_environment(const std::map<std::string, std::string>& environment, SettingsByKey& settings,
                     Problems& problems);
void add_sets(const std::vector<std::string>& sets, SettingsByKey& settings, Problems& problems);
void add_flags(const std::vector<std::pair<std::string, std::string>>& flags, SettingsByKey& settings,
               Problems& problems);

}  // namespace rivulet::runtime
