#pragma once
#include <functional>
#include <string>
#include <vector>

#include "runtime/config/layers.h"

/// What is wrong with keys of the chosen format that say which values and rows count (private to config/).
namespace rivulet::runtime {

using Complain = std::function<void(const std::vector<std::string>& keys, const std::string& message)>;

/// Calls `wrong` with the keys that are meant and a sentence. `written`: what somebody has set.
void check_rows(const Config& config, const SettingsByKey& written, const Complain& wrong);

}  // namespace rivulet::runtime
