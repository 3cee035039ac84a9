#pragma once
#include "runtime/config/check_rows.h"

/// Checks of numbers in [train] (private to config/).
namespace rivulet::runtime {

/// As check_rows(). `warn`: for values without effect or with a harmful one.
void check_training(const Config& config, const SettingsByKey& written, const Complain& wrong,
                    const Complain& warn);

}  // namespace rivulet::runtime
