#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "core/digest.h"
#include "runtime/state/agreed_state.h"

namespace rivulet::runtime {

/// The model of an agreed state as a safetensors file: parameters and buffers under the names and shapes that
/// the model gives them, little-endian, in the order of the layout, behind batch norm's num_batches_tracked
/// (the steps made), without which PyTorch does not load a batch norm; in the metadata format ("pt"), model,
/// stamp, digest (of the whole state) and rows. The optimizer is not in it. Equal states give equal bytes.
/// Format: https://github.com/huggingface/safetensors, "Format". Needs host-readable memory.
std::vector<std::byte> encode_safetensors(const std::string& model, const AgreedState& state,
                                          const Digest& digest);

}  // namespace rivulet::runtime
