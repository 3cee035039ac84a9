#pragma once
#include <functional>
#include <string>
#include <vector>

#include "runtime/config/layers.h"

/// Checks keys of the chosen format that select values and rows (private to config/).
namespace rivulet::runtime {

using Complain = std::function<void(const std::vector<std::string>& keys, const std::string& message)>;

/// Calls `wrong` with the keys concerned and a message. `written`: the keys set explicitly.
void check_rows(const Config& config, const SettingsByKey& written, const Complain& wrong);

}  // namespace rivulet::runtime
