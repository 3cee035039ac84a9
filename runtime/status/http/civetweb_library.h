#pragma once

namespace rivulet::runtime {

/// Before the first call into civetweb. Thread-safe; what it sets up stays until the process ends, because
/// civetweb's own counting of users is not safe against a first and a last user at the same time.
void use_civetweb();

}  // namespace rivulet::runtime
