#pragma once
#include "runtime/config/check_rows.h"

/// What is wrong with numbers of [train] (private to config/).
namespace rivulet::runtime {

/// As check_rows(). `warn`: of what has no effect, or a bad one.
void check_training(const Config& config, const SettingsByKey& written, const Complain& wrong,
                    const Complain& warn);

}  // namespace rivulet::runtime
