#include "devices/process_memory.h"

#include <malloc.h>

#include <cstdlib>

namespace rivulet::devices {

void keep_freed_memory() {
  constexpr int kept_block_bytes = 4 << 20;
  constexpr int kept_bytes = 512 << 20;
  // NOLINTBEGIN(concurrency-mt-unsafe): called before other threads start
  mallopt(M_MMAP_THRESHOLD, kept_block_bytes);
  mallopt(M_TRIM_THRESHOLD, kept_bytes);
  setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128", 0);
  // NOLINTEND(concurrency-mt-unsafe)
}

}  // namespace rivulet::devices
