#pragma once
#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"

/// The address that Gloo publishes for one rank, and how an advertised address is put into it.
///
///   length of host name, 8 | host name | length of address, 8 | sockaddr_storage, 128 | sequence, 8 | pair
///   numbers
///
/// Gloo lets the side with the higher address dial and the other listen; each side compares its own local
/// address with the one it was given. Behind address translation the two can disagree. So the choice is made
/// here, the same for both sides, and each is given an address that leads Gloo to that choice.
namespace rivulet::sync::gloo_door {

using Blob = std::vector<std::uint8_t>;

/// Returns the sockaddr_storage of a blob; empty if the layout is not the one above.
std::optional<sockaddr_storage> address_in(const Blob& blob);

/// Returns whether the blob holds all bytes that Gloo reads, without a check, in a group of `world`.
bool complete(const Blob& blob, std::uint32_t world);

/// Returns a copy in which unused bytes of the address are 0. Gloo leaves them uninitialized, and memory must
/// not leave the process. The blob is complete().
Blob made_anew(const Blob& blob, std::uint32_t world);

/// Replaces the numbers that connections to the rank begin with, one for each rank of `world`, by
/// instead(number). The blob is complete().
Blob with_numbers(Blob blob, std::uint32_t world, const std::function<std::int64_t(std::int64_t)>& instead);

/// Returns the forms in which Gloo prints an address in messages ("[ip]:port", port in either byte order).
std::vector<std::string> printed(const sockaddr_storage& address);

/// Appends the address that peers should dial (empty = the one in the blob).
Blob seal(Blob blob, const std::string& advertise);

struct Sealed {
  Blob blob;
  std::string advertise;
};
std::optional<Sealed> unseal(const Blob& value);

/// Returns the blob that rank `me` hands to Gloo for rank `peer`. Errors: invalid_config (neither side can
/// dial the other), protocol (unknown layout of a blob).
Result<Blob> blob_for(std::uint32_t me, const Sealed& mine, std::uint32_t peer, const Sealed& theirs);

}  // namespace rivulet::sync::gloo_door
