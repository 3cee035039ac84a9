#pragma once
#include <string>
#include <string_view>

namespace rivulet::devices {

/// The library's message on a script that failed, in one line of at most 500 bytes: the reason, then the last
/// place of the traceback, the script's own line. Other words as they are, but for control characters. Pure.
std::string readable(std::string_view words);

}  // namespace rivulet::devices
