#include "runtime/status/http/civetweb_library.h"

#include <civetweb.h>
#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace {

constexpr std::size_t stack_least = std::size_t{1} << 20U;

}  // namespace

/// Stands before libc's for the whole process (docs/adr/0022): civetweb asks for stacks of 100 KiB, of which
/// glibc takes what all libraries keep for each thread, and those of CUDA alone keep 250 KiB.
extern "C" int pthread_attr_setstacksize(pthread_attr_t* attributes, std::size_t bytes) noexcept {
  using SetStackSize = int (*)(pthread_attr_t*, std::size_t);
  static const auto of_libc = reinterpret_cast<SetStackSize>(dlsym(RTLD_NEXT, "pthread_attr_setstacksize"));
  return of_libc == nullptr ? ENOSYS : of_libc(attributes, std::max(bytes, stack_least));
}

namespace rivulet::runtime {

void use_civetweb() {
  [[maybe_unused]] static const unsigned features = mg_init_library(0);
}

}  // namespace rivulet::runtime
