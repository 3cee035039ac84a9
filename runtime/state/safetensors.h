#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/digest.h"
#include "runtime/state/agreed_state.h"
#include "runtime/state/exported_model.h"

namespace rivulet::runtime {

/// Metadata of both files. The texts in `more` follow format ("pt"), model, stamp, digest (of the state) and
/// rows.
struct ExportNotes {
  std::string model;
  std::vector<std::pair<std::string, std::string>> more = {};
};

/// Encodes the model of an agreed state as a safetensors file. Parameters and buffers have the model's names
/// and shapes, little-endian, in layout order. Batch norm's num_batches_tracked (the number of steps) comes
/// first: PyTorch does not load a batch norm without it. The parameters are taken from `model`, not from the
/// state; feature normalization is in the metadata ("normalization"), not in a tensor. Equal states give
/// equal bytes. Format: https://github.com/huggingface/safetensors, "Format". Needs host-readable memory.
std::vector<std::byte> encode_safetensors(const ExportNotes& notes, const AgreedState& state,
                                          const ExportedModel& model, const Digest& digest);

/// Encodes the optimizer's arrays in the same format, named after array and parameter:
/// "momentum.conv1.weight". A separate file, since a model's load_state_dict() accepts no other names. The
/// arrays belong to the parameters as trained, before a normalization was folded into them.
std::vector<std::byte> encode_optimizer(const ExportNotes& notes, const AgreedState& state,
                                        const Digest& digest);

}  // namespace rivulet::runtime
