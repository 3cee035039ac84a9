#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace rivulet::runtime::cli {

/// Returns the files loaded into this process that define a global function whose mangled name starts with
/// `prefix` ("_ZN4gloo"). Two copies of a library intercept each other's calls; doctor and a test count them.
std::vector<std::string> loaded_objects_defining(std::string_view prefix);

}  // namespace rivulet::runtime::cli
