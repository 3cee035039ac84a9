#include "devices/process_memory.h"

#include <malloc.h>

namespace rivulet::devices {

void keep_freed_memory() {
  constexpr int kept_bytes = 512 << 20;
  // NOLINTBEGIN(concurrency-mt-unsafe): called before there are other threads
  mallopt(M_MMAP_THRESHOLD, kept_bytes);
  mallopt(M_TRIM_THRESHOLD, kept_bytes);
  // NOLINTEND(concurrency-mt-unsafe)
}

}  // namespace rivulet::devices
