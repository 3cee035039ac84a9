#pragma once

namespace rivulet::devices {

/// Makes malloc keep freed blocks of up to 4 MiB instead of returning them to the system after every step:
/// this trains LeNet 1.5 times as fast. Larger blocks are returned, since batches of many sizes would
/// fragment the heap (bench/limits memory). Limits oneDNN's cache of kernels, which has an entry per batch
/// size. Process-wide; call once, before threads start.
void keep_freed_memory();

}  // namespace rivulet::devices
