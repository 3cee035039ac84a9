#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/digest.h"
#include "runtime/state/agreed_state.h"
#include "runtime/state/exported_model.h"

namespace rivulet::runtime {

/// What both files say of themselves: texts by name, behind format ("pt"), model, stamp, digest (of the whole
/// state) and rows.
struct ExportNotes {
  std::string model;
  std::vector<std::pair<std::string, std::string>> more = {};
};

/// The model of an agreed state as a safetensors file: parameters and buffers under the names and shapes that
/// the model gives them, little-endian, in the order of the layout, behind batch norm's num_batches_tracked
/// (the steps made), without which PyTorch does not load a batch norm. Tensors of `model` in place of the
/// state's; what is known of features is in the metadata ("normalization") and no tensor. Equal states give
/// equal bytes. Format: https://github.com/huggingface/safetensors, "Format". Needs host-readable memory.
std::vector<std::byte> encode_safetensors(const ExportNotes& notes, const AgreedState& state,
                                          const ExportedModel& model, const Digest& digest);

/// What its optimizer remembers, in the same format and under the parameters' names behind the array's:
/// "momentum.conv1.weight". A file of its own, since a model's load_state_dict() takes no other names. It is
/// of the parameters as they were trained: before a normalization was folded into them.
std::vector<std::byte> encode_optimizer(const ExportNotes& notes, const AgreedState& state,
                                        const Digest& digest);

}  // namespace rivulet::runtime
