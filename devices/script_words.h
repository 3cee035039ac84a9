#pragma once
#include <string>
#include <string_view>

namespace rivulet::devices {

/// Returns the library's message about a failed script as one line of at most 500 bytes: the reason, then the
/// last place of the traceback, the script's own line. Other messages are only made printable. Pure.
std::string readable(std::string_view words);

}  // namespace rivulet::devices
