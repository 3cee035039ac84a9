#pragma once
#include <string>

namespace rivulet::testing {

/// Where this build lies. Functions, so that a folder's name is compiled into one file only: everything else
/// that is compiled in one clone is found in the compiler's cache by the next.

/// The source tree, or what lies in it: source_path("examples/mnist/data").
std::string source_path(const std::string& below = "");
/// build/<preset>/rivulet.
std::string rivulet_binary();
/// What runs beside a test as a process of its own; empty in builds that have none.
std::string tally_device();
std::string paced_device();

}  // namespace rivulet::testing
