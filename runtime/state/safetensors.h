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
/// stamp, digest (of the whole state) and rows. Equal states give equal bytes.
/// Format: https://github.com/huggingface/safetensors, "Format". Needs host-readable memory.
std::vector<std::byte> encode_safetensors(const std::string& model, const AgreedState& state,
                                          const Digest& digest);

/// What its optimizer remembers, in the same format and under the parameters' names behind the array's:
/// "momentum.conv1.weight". A file of its own, since a model's load_state_dict() takes no other names.
std::vector<std::byte> encode_optimizer(const std::string& model, const AgreedState& state,
                                        const Digest& digest);

}  // namespace rivulet::runtime
