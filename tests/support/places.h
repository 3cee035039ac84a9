#pragma once
#include <string>

namespace rivulet::testing {

/// Paths of this build. They are functions, so that only one file contains a folder's name: compiled files
/// are then equal across clones, and the compiler cache finds them.

/// The source tree, or a path in it: source_path("examples/mnist/data").
std::string source_path(const std::string& below = "");
/// build/<preset>/rivulet.
std::string rivulet_binary();
/// A helper process for tests; empty in builds without it.
std::string tally_device();
std::string paced_device();

}  // namespace rivulet::testing
