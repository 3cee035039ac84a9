#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/gradient_view.h"
#include "core/result.h"
#include "devices/optimizer.h"
#include "runtime/state/agreed_state.h"
#include "sync/message/facts.h"
#include "sync/message/field_bytes.h"
#include "sync/message/plan.h"

/// Messages of a background copy of the agreed state, from a member of the view (state_donor.h) to a device
/// that waits to join it (state_copy.h): the image of the state in pieces, then the rounds that the group has
/// applied since. Each message is a head on Lane::state followed by its body; the receiver answers it with a
/// word on Lane::confirmed. docs/PROTOCOL.md documents the bytes.
namespace rivulet::runtime {

enum class CopyPart : std::uint32_t {
  image = 1,   ///< a piece of the image
  rounds = 2,  ///< any number of rounds, also none: the donor is alive
  end = 3,     ///< the view has ended; no body
};

struct CopyHead {
  std::uint64_t token = 0;  ///< of the copy
  CopyPart part = CopyPart::rounds;
  std::uint64_t first = 0;  ///< image: position of the piece; end: lineage of the state
  std::uint64_t total = 0;  ///< image: bytes of the image; end: step of the state
  std::uint64_t bytes = 0;  ///< of the body
  std::uint64_t sum = 0;    ///< low half of XXH3-128 of the body
  bool operator==(const CopyHead&) const = default;
};
inline constexpr std::size_t copy_head_bytes = 64;
using CopyHeadBytes = std::array<std::byte, copy_head_bytes>;
inline constexpr std::size_t copy_answer_bytes = 8;

CopyHeadBytes encode(const CopyHead& head);
/// Errors: protocol.
Result<CopyHead> decode_copy_head(std::span<const std::byte> bytes);

/// A piece of an image, and the rounds sent together, unless one alone is longer.
inline constexpr std::size_t copy_piece_bytes = std::size_t{1} << 20U;

/// A round that has changed the agreed state.
struct CopiedRound {
  std::uint64_t view = 0;  ///< number of the view
  sync::policy::Mode mode =
      sync::policy::Mode::idle;  ///< gradients or delta; idle: it has only moved offsets
  double learning_rate_factor = 1;
  sync::FactsTable table;
  std::vector<sync::policy::ControllerMemory> memory;  ///< memory of the controllers after the round
};
/// Encodes a round with its agreed sum [P + B] (empty in mode idle), as positions and values if that is
/// shorter. Errors: protocol (facts that cannot be encoded).
Result<std::vector<std::byte>> encode_round(const CopiedRound& round, const GradientView& sum);
/// Decodes the next round of untrusted bytes; writes its sum to `sum`, in host memory. Errors: protocol.
Result<CopiedRound> read_round(sync::FieldReader& bytes, const GradientView& sum);
/// Maximum bytes of a body of rounds, for a contribution of this size. Pure.
std::size_t rounds_bytes_max(const GradientView& sum);

/// Applies a decoded round to a copy of the state, as the group has applied it. Errors: protocol (the round
/// does not follow this state, or the members have a different digest), the device's.
Status apply_round(AgreedState& state, const CopiedRound& round, const GradientView& sum,
                   const devices::OptimizerConfig& optimizer, devices::Device& device);

}  // namespace rivulet::runtime
