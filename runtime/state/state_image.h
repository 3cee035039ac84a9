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

/// Part of the meaning of a state's values, which their shapes do not show: "features" are temp, rms;
/// "classes" are ok, fault. Made by meaning_of() in an order that depends only on the configuration.
struct MeaningPart {
  std::string what;
  std::vector<std::string> list;
  bool operator==(const MeaningPart&) const = default;
};
using Meaning = std::vector<MeaningPart>;

/// The job and model that a state belongs to. Its parameters and offsets are valid only for that job and its
/// topics.
struct StateOwner {
  std::string model;  ///< name of the model
  std::string job;
  std::vector<std::string> topics;  ///< PartitionId::topic is an index into these
  Meaning meaning = {};
};

/// Encodes an agreed state for disk and transfer: a 64-byte head (version, sections, length, stamp, digest,
/// checksum), sections with tag, length and checksum each, and the SHA-256 of all of it. Readers skip unknown
/// sections. image_format.h documents the layout. `digest`: digest of `state`.
std::vector<std::byte> encode_state(const StateOwner& owner, const AgreedState& state, const Digest& digest);

/// Returns the SHA-256 at the end of an image made by encode_state(). It covers all bytes before it.
Sha256 hash_in(std::span<const std::byte> image);

/// Expected owner and shapes of an image. Shapes are those of the local model, never read from the image. An
/// owner without job, topics or meaning accepts any. New topics may follow those of the state.
struct Expected {
  const StateOwner& owner;
  const devices::ModelLayout& layout;
  devices::Device& device;
};
struct DecodedState {
  AgreedState state;
  Digest digest;            ///< digest as written; check_digest() verifies it
  Sha256 hash{};            ///< hash_in() of the image
  std::size_t skipped = 0;  ///< sections that only a newer build can read
};
/// Decodes untrusted bytes: checks lengths before allocating and checksums before using anything. Errors:
/// invalid_config (a complete image with a different model, job, topics or meaning; names both values),
/// otherwise bad_record (names the defect).
Result<DecodedState> decode_state(std::span<const std::byte> bytes, const Expected& expected);
/// Checks that the state has the digest in the image's head. Errors: bad_record (names both digests), the
/// device's.
Status check_digest(const DecodedState& decoded, devices::Device& device);

/// Returns the bytes of the arrays of a state of this model: nearly all of an image. Pure.
std::size_t state_array_bytes(const devices::ModelLayout& layout);
/// Returns the maximum length of an image of this model. Pure.
std::size_t state_image_max(const devices::ModelLayout& layout);

/// The head of an image, for lists of files. `bytes` may end after the head; `length`: length of the whole
/// image. Errors: bad_record.
struct StateHead {
  Stamp stamp;
  Digest digest;
  std::uint64_t bytes = 0;
};
Result<StateHead> decode_state_head(std::span<const std::byte> bytes, std::uint64_t length);

}  // namespace rivulet::runtime
