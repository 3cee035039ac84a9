#pragma once
#include <string_view>

namespace rivulet {

/// Prints file, line and message, and aborts the process. For bugs only; expected failures return a Result.
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               std::string_view message) noexcept;

}  // namespace rivulet

/// An invariant that is checked in release builds too: RIVULET_CHECK(rows <= capacity, "slab overrun").
#define RIVULET_CHECK(condition, message)              \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::rivulet::check_failed(__FILE__, __LINE__, #condition, message))
