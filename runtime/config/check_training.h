#pragma once
#include "runtime/config/check_rows.h"

/// Checks of numbers in [train] (private to config/).
namespace rivulet::runtime {

/// Like check_rows(). Calls `warn` for values that have no effect or a harmful one.
void check_training(const Config& config, const SettingsByKey& written, const Complain& wrong,
                    const Complain& warn);

}  // namespace rivulet::runtime
