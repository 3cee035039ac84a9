#include "runtime/checkpoint/private_part.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "core/sha256.h"
#include "sync/message/field_bytes.h"

namespace rivulet::runtime {
namespace {

constexpr std::string_view magic = "RVLPRIVA";
constexpr std::uint32_t version = 1;
constexpr std::string_view residual_name = "residual";
constexpr std::string_view deltas_name = "residual of deltas";
constexpr std::string_view steps_name = "local steps";
constexpr std::string_view norm_name = "own norm";
constexpr std::size_t own_max = 8;  ///< optimizer arrays
constexpr std::size_t name_max = 256;
constexpr std::size_t frame_bytes = 4096;
constexpr std::uint32_t arrays_max = 64;

void append(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

Error damaged(const std::string& what) {
  return {ErrorCode::bad_record, "private part: " + what};
}

/// Name of the optimizer's private array `i` in the file: "own.0" is the first.
std::string name_of_own(std::size_t i) {
  return "own." + std::to_string(i);
}

Status take_array(std::string_view name, std::span<const std::byte> bytes, std::size_t array_bytes,
                  PrivatePart& part) {
  if (name == steps_name) {
    if (bytes.size() != sizeof part.local_steps) return damaged("wrong size of a number");
    std::memcpy(&part.local_steps, bytes.data(), bytes.size());
    return ok();
  }
  if (name == norm_name) {
    if (bytes.size() != sizeof part.local_norm) return damaged("wrong size of a number");
    std::memcpy(&part.local_norm, bytes.data(), bytes.size());
    return std::isfinite(part.local_norm) && part.local_norm >= 0 ? ok() : Status(damaged("invalid norm"));
  }
  const bool deltas = name == deltas_name;
  const bool own = name == name_of_own(part.local_arrays.size()) && part.local_arrays.size() < own_max;
  if (name != residual_name && !deltas && !own) return ok();
  if (bytes.size() != array_bytes) return damaged("array size differs from that of the model");
  if (own) {
    part.local_arrays.emplace_back(bytes.begin(), bytes.end());
    return ok();
  }
  part.of_deltas = deltas;
  part.residual.assign(bytes.begin(), bytes.end());
  return ok();
}

/// Reads the arrays after the head.
Status read_arrays(sync::FieldReader& reader, std::uint32_t arrays, std::size_t array_bytes,
                   PrivatePart& part) {
  for (std::uint32_t i = 0; i < arrays && reader.fine(); ++i) {
    std::uint32_t length = 0;
    std::uint64_t bytes = 0;
    reader.get(length);
    if (length > name_max) return damaged("array name of " + std::to_string(length) + " bytes");
    const auto name = reader.cut(length);
    reader.get(bytes);
    const auto array = reader.cut(bytes);
    const std::string_view text(reinterpret_cast<const char*>(name.data()), name.size());
    if (!reader.fine()) break;
    if (auto taken = take_array(text, array, array_bytes, part); !taken) return taken;
  }
  return reader.fine() && reader.empty() ? ok() : Status(damaged("truncated arrays"));
}

void put_array(std::vector<std::byte>& out, const std::string& name, std::span<const std::byte> bytes) {
  sync::FieldWriter writer(out);
  writer.put(name);
  writer.put(std::uint64_t{bytes.size()});
  append(out, bytes);
}

}  // namespace

std::vector<std::byte> encode_private(const PrivatePart& part) {
  std::vector<std::byte> out;
  out.reserve(frame_bytes + part.residual.size() * (1 + part.local_arrays.size()));
  append(out, std::as_bytes(std::span(magic)));
  sync::FieldWriter writer(out);
  writer.put(version);
  writer.put(static_cast<std::uint32_t>(part.scalar));
  writer.put(part.stamp.lineage);
  writer.put(part.stamp.step);
  const std::size_t own = part.local_arrays.size();
  writer.put(static_cast<std::uint32_t>((part.residual.empty() ? 0 : 1) + (own > 0 ? 2 + own : 0)));
  if (!part.residual.empty())
    put_array(out, std::string(part.of_deltas ? deltas_name : residual_name), part.residual);
  if (own > 0) {
    put_array(out, std::string(steps_name), std::as_bytes(std::span(&part.local_steps, 1)));
    put_array(out, std::string(norm_name), std::as_bytes(std::span(&part.local_norm, 1)));
  }
  for (std::size_t i = 0; i < own; ++i) put_array(out, name_of_own(i), part.local_arrays[i]);
  append(out, sha256_of(out));
  return out;
}

std::size_t private_part_max(std::size_t parameters, Scalar scalar) {
  return frame_bytes + (1 + own_max) * parameters * bytes_of(scalar);
}

Result<PrivatePart> decode_private(std::span<const std::byte> bytes, std::size_t parameters, Scalar scalar) {
  constexpr std::size_t hash_bytes = sizeof(Sha256);
  if (bytes.size() < magic.size() + hash_bytes) return damaged("too short");
  const auto body = bytes.first(bytes.size() - hash_bytes);
  const auto hash = sha256_of(body);
  if (!std::ranges::equal(hash, bytes.last(hash_bytes))) return damaged("checksum mismatch");
  sync::FieldReader reader(body);
  const auto begin = reader.cut(magic.size());
  if (!std::ranges::equal(begin, std::as_bytes(std::span(magic)))) return damaged("wrong magic");
  std::uint32_t of_version = 0;
  std::uint32_t of_scalar = 0;
  std::uint32_t arrays = 0;
  PrivatePart part;
  reader.get(of_version);
  if (of_version != version) return damaged("version " + std::to_string(of_version) + ", this build reads 1");
  reader.get(of_scalar);
  reader.get(part.stamp.lineage);
  reader.get(part.stamp.step);
  reader.get(arrays);
  if (of_scalar != static_cast<std::uint32_t>(scalar)) return damaged("wrong element type");
  if (arrays > arrays_max) return damaged(std::to_string(arrays) + " arrays");
  part.scalar = scalar;
  if (auto read = read_arrays(reader, arrays, parameters * bytes_of(scalar), part); !read)
    return read.error();
  return part;
}

}  // namespace rivulet::runtime
