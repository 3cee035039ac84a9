#pragma once

namespace rivulet::devices {

/// Makes malloc keep freed blocks of up to 4 MiB instead of giving them back to the system after every step:
/// LeNet trains half as fast again. Larger ones go back: batches of many sizes would leave holes between them
/// that nothing fits (bench/limits memory). Kernels that were made for sizes of batches are kept for some of
/// them only. Process-wide, once, before threads start.
void keep_freed_memory();

}  // namespace rivulet::devices
