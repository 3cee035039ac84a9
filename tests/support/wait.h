#pragma once
#include <functional>

#include "core/time.h"

namespace rivulet::testing {

/// Asks `done` every 10 ms until it says yes (true) or `deadline` has passed (false). For processes and
/// brokers only: a unit test has no reason to wait.
bool wait_until(const std::function<bool()>& done, Duration deadline);

}  // namespace rivulet::testing
