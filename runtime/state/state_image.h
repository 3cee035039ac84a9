#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/digest.h"
#include "core/result.h"
#include "core/sha256.h"
#include "devices/device.h"
#include "runtime/state/agreed_state.h"

namespace rivulet::runtime {

inline constexpr std::uint32_t state_image_version = 8;
inline constexpr std::size_t state_head_bytes = 64;

/// What the numbers of a state mean, which equal shapes do not tell: "features" are temp, rms; "classes" are
/// ok, fault. Made by meaning_of() in an order that follows from the configuration alone.
struct MeaningPart {
  std::string what;
  std::vector<std::string> list;
  bool operator==(const MeaningPart&) const = default;
};
using Meaning = std::vector<MeaningPart>;

/// What a state is of, besides its shapes: parameters of another job mean nothing here, and offsets of other
/// topics still less.
struct StateOwner {
  std::string model;  ///< its name
  std::string job;
  std::vector<std::string> topics;  ///< PartitionId::topic is an index of these
  Meaning meaning = {};
};

/// An agreed state as bytes, on disk and between devices: a 64-byte head (version, sections, length, stamp,
/// digest, checksum), sections with tag, length and checksum each, of which unknown ones are skipped, SHA-256
/// over all of it. The layout is a table in image_format.h. `digest` is the state's own.
std::vector<std::byte> encode_state(const StateOwner& owner, const AgreedState& state, const Digest& digest);

/// The SHA-256 at the end of an image that encode_state() made; it is of all the bytes before it.
Sha256 hash_in(std::span<const std::byte> image);

/// What decode_state() expects: shapes come from the local model, never from the bytes. An owner without a
/// job, without topics or without a meaning takes those of any; topics may have been added behind those of
/// the state.
struct Expected {
  const StateOwner& owner;
  const devices::ModelLayout& layout;
  devices::Device& device;
};
struct DecodedState {
  AgreedState state;
  Digest digest;            ///< as written; digest_of(state) is the proof
  Sha256 hash{};            ///< hash_in() the image
  std::size_t skipped = 0;  ///< sections that only a newer build knows
};
/// Takes nothing on trust: lengths are checked before anything is allocated, checksums before anything is
/// used. Errors: invalid_config (a whole image, of another model, job, topics or meaning: has both), else
/// bad_record (names what is wrong).
Result<DecodedState> decode_state(std::span<const std::byte> bytes, const Expected& expected);
/// Its numbers have the digest that it claims: what a file claims is not evidence. Errors: bad_record
/// (has both), those of the device.
Status check_digest(const DecodedState& decoded, devices::Device& device);

/// No image of this model is longer. Pure.
std::size_t state_image_max(const devices::ModelLayout& layout);

/// What is in the head, for lists of files: `bytes` may end with it, `length` is how many there are.
/// Errors: bad_record.
struct StateHead {
  Stamp stamp;
  Digest digest;
  std::uint64_t bytes = 0;
};
Result<StateHead> decode_state_head(std::span<const std::byte> bytes, std::uint64_t length);

}  // namespace rivulet::runtime
