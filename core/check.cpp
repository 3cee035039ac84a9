#include "core/check.h"

#include <cstdio>
#include <cstdlib>

namespace rivulet {

void check_failed(const char* file, int line, const char* condition, std::string_view message) noexcept {
  std::fprintf(stderr, "rivulet: bug: %s:%d: check(%s) failed: %.*s\n", file, line, condition,
               static_cast<int>(message.size()), message.data());
  std::abort();
}

}  // namespace rivulet
