#include "runtime/state/safetensors.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <span>

#include "core/check.h"

namespace rivulet::runtime {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are written in the byte order of memory");

using SafeHeader = nlohmann::ordered_json;

constexpr std::size_t header_multiple = 8;  // aligns elements of every type

/// Adds the tensors of one flat array. Returns the offset after them.
std::size_t add_tensors(SafeHeader& header, const std::vector<devices::TensorSlot>& slots, Scalar scalar,
                        std::size_t begin) {
  for (const auto& slot : slots) {
    const std::size_t end = begin + slot.count * bytes_of(scalar);
    header[slot.name] = {{"dtype", scalar == Scalar::f32 ? "F32" : "F64"},
                         {"shape", slot.shape},
                         {"data_offsets", {begin, end}}};
    begin = end;
  }
  return begin;
}

/// Adds 8-byte integers. They come first, so they are aligned.
std::size_t add_counts(SafeHeader& header, const std::vector<std::string>& names) {
  std::size_t begin = 0;
  for (const std::string& name : names) {
    header[name] = {{"dtype", "I64"},
                    {"shape", SafeHeader::array()},
                    {"data_offsets", {begin, begin + sizeof(std::int64_t)}}};
    begin += sizeof(std::int64_t);
  }
  return begin;
}

/// Copies `bytes` to the front of `rest` and advances it.
void put(std::span<std::byte>& rest, std::span<const std::byte> bytes) {
  std::ranges::copy(bytes, rest.begin());
  rest = rest.subspan(bytes.size());
}

void put_tensors(std::span<std::byte>& rest, const std::vector<devices::TensorSlot>& slots,
                 const GradientView& numbers) {
  for (const auto& slot : slots) put(rest, numbers.slice(slot.begin, slot.count).host_bytes());
}

SafeHeader metadata_of(const ExportNotes& notes, const AgreedState& state, const Digest& digest) {
  SafeHeader all{{"format", "pt"},
                 {"model", notes.model},
                 {"stamp", text_of(state.stamp)},
                 {"digest", digest.hex()},
                 {"rows", std::to_string(state.rows)}};
  for (const auto& [name, text] : notes.more) all[name] = text;
  return all;
}

/// As text, like all metadata of a file; readers parse it as JSON.
void add_normalization(SafeHeader& metadata, const ExportedModel& model) {
  metadata["normalization"] = name_of(model.normalization);
  if (model.scaling) {
    metadata["normalization.mean"] = SafeHeader(model.scaling->mean).dump();
    metadata["normalization.factor"] = SafeHeader(model.scaling->factor).dump();
  }
  if (!model.targets) return;
  metadata["prediction.mean"] = SafeHeader(model.targets->mean).dump();
  metadata["prediction.deviation"] = SafeHeader(model.targets->deviation).dump();
}

/// Allocates the header and `data` bytes after it, writes the header, and returns the part after it.
std::span<std::byte> begin_file(const SafeHeader& header, std::size_t data, std::vector<std::byte>& out) {
  std::string text = header.dump();
  text.resize((text.size() + header_multiple - 1) / header_multiple * header_multiple, ' ');
  const std::uint64_t length = text.size();
  out.resize(sizeof length + text.size() + data);
  std::span<std::byte> rest(out);
  put(rest, std::as_bytes(std::span<const std::uint64_t, 1>(&length, 1)));
  put(rest, std::as_bytes(std::span(text)));
  return rest;
}

}  // namespace

std::vector<std::byte> encode_safetensors(const ExportNotes& notes, const AgreedState& state,
                                          const ExportedModel& model, const Digest& digest) {
  const auto layout = devices::without_measured(state.model.layout());
  SafeHeader header;
  header["__metadata__"] = metadata_of(notes, state, digest);
  add_normalization(header["__metadata__"], model);
  const std::size_t counts = add_counts(header, layout.batch_counts);
  const std::size_t buffers = add_tensors(header, layout.parameter_slots, layout.scalar, counts);
  const std::size_t data = add_tensors(header, layout.buffer_slots, layout.scalar, buffers);
  std::vector<std::byte> out;
  std::span<std::byte> rest = begin_file(header, data, out);
  const auto steps = static_cast<std::int64_t>(state.stamp.step);
  for (std::size_t i = 0; i < layout.batch_counts.size(); ++i)
    put(rest, std::as_bytes(std::span<const std::int64_t, 1>(&steps, 1)));
  put(rest, model.parameters);
  put_tensors(rest, layout.buffer_slots, state.model.buffers());
  RIVULET_CHECK(rest.empty(), "a tensor is not at its offset in the header");
  return out;
}

std::vector<std::byte> encode_optimizer(const ExportNotes& notes, const AgreedState& state,
                                        const Digest& digest) {
  const auto& layout = state.model.layout();
  SafeHeader header;
  header["__metadata__"] = metadata_of(notes, state, digest);
  std::size_t data = 0;
  for (const devices::OptimizerArray& array : layout.optimizer_arrays) {
    auto slots = layout.parameter_slots;
    for (auto& slot : slots) slot.name = array.name + "." + slot.name;
    data = add_tensors(header, slots, layout.scalar, data);
  }
  std::vector<std::byte> out;
  std::span<std::byte> rest = begin_file(header, data, out);
  for (std::size_t i = 0; i < layout.optimizer_arrays.size(); ++i)
    put_tensors(rest, layout.parameter_slots, state.model.optimizer_array(i));
  RIVULET_CHECK(rest.empty(), "a tensor is not at its offset in the header");
  return out;
}

}  // namespace rivulet::runtime
